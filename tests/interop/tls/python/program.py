"""A command-line client as a child process: it is fed what is to be echoed, its output collected as it comes."""

import subprocess
import threading

from rows import data

PATIENCE = 30  # seconds without the end of a step; not a measure of anything


class Program:
    def __init__(self, command, after=b""):
        """The echo is what its output holds after the first `after`; what it says besides goes to its standard error."""
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.after, self.ended, self.news = after, 0, threading.Condition()
        self.output, self.errors = bytearray(), bytearray()
        for pipe, sink in [(self.child.stdout, self.output), (self.child.stderr, self.errors)]:
            threading.Thread(target=self._collect, args=[pipe, sink], daemon=True).start()

    def _collect(self, pipe, sink):
        while some := pipe.read1(1 << 16):
            with self.news:
                sink += some
                self.news.notify()
        with self.news:
            self.ended += 1
            self.news.notify()

    def _wait(self, enough):
        with self.news:
            if not self.news.wait_for(lambda: self.ended == 2 or enough(), PATIENCE):
                self.child.kill()
                raise TimeoutError(f"it went quiet: {self.text()}")

    def text(self):
        """What it said, without the data."""
        report, _, _ = self.output.partition(self.after) if self.after else (b"", b"", b"")
        return (report + self.errors).decode(errors="replace")

    def echoed(self):
        return self.output.partition(self.after)[2] if self.after else self.output

    def converse(self, sizes):
        """Sends what is to be echoed and waits for it, then ends the input and waits for the program's end."""
        expected = b"".join(map(data, sizes))
        sender = threading.Thread(target=self._send, args=[expected], daemon=True)
        sender.start()
        self._wait(lambda: len(self.echoed()) >= len(expected))
        if len(self.echoed()) >= len(expected):
            sender.join()
            self.child.stdin.close()
        self._wait(lambda: False)
        status = self.child.wait()
        if self.echoed()[: len(expected)] != expected:
            raise ValueError(f"{len(self.echoed())} bytes came back for {len(expected)}; status {status}; {self.text()}")

    def _send(self, everything):
        try:
            self.child.stdin.write(everything)
            self.child.stdin.flush()
        except BrokenPipeError:
            pass  # Its end tells more.
