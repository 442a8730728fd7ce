"""A command-line client as a child process: it is fed what is to be echoed, its output collected as it comes."""

import subprocess
import threading

from rows import data

PATIENCE = 30  # seconds without the end of a step; not a measure of anything


class Program:
    """Its output is the echo; what it says besides goes to its standard error."""

    def __init__(self, command):
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.ended, self.news = 0, threading.Condition()
        self.echoed, self.errors = bytearray(), bytearray()
        for pipe, sink in [(self.child.stdout, self.echoed), (self.child.stderr, self.errors)]:
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
        """What it said, without the echo."""
        return self.errors.decode(errors="replace")

    def say(self, line, answer):
        """Sends a line and waits until it has said `answer` once more."""
        before = self.errors.count(answer) + self.echoed.count(answer)
        self._send(line)
        self._wait(lambda: self.errors.count(answer) + self.echoed.count(answer) > before)

    def converse(self, sizes):
        """Sends what is to be echoed and waits for it, then ends the input and waits for the program's end."""
        self.finish(b"".join(map(data, sizes)))

    def finish(self, expected):
        """Sends this, to be echoed, and ends."""
        sender = threading.Thread(target=self._send, args=[expected], daemon=True)
        sender.start()
        self._wait(lambda: len(self.echoed) >= len(expected))
        if len(self.echoed) >= len(expected):
            sender.join()
            self.child.stdin.close()
        self._wait(lambda: False)
        status = self.child.wait()
        if self.echoed[: len(expected)] != expected:
            raise ValueError(f"{len(self.echoed)} bytes came back for {len(expected)}; status {status}; {self.text()}")

    def _send(self, everything):
        try:
            self.child.stdin.write(everything)
            self.child.stdin.flush()
        except BrokenPipeError:
            pass  # Its end tells more.
