"""What the peers' programs share: rows come in on standard input, lines about their connections go out (README.md)."""

import sys

LINE = 16384  # what one record holds


def data(count):
    """`count` bytes in lines of at most `LINE` with their newline, no two neighbours alike."""
    out = bytearray(97 + (i * 7 + i // 251) % 26 for i in range(count))
    out[LINE - 1 :: LINE] = b"\n" * len(out[LINE - 1 :: LINE])
    out[-1:] = b"\n"
    return bytes(out)


def lines_of(count):
    all_of_it = data(count)
    return [all_of_it[i : i + LINE] for i in range(0, count, LINE)]


class Row(dict):
    """One row: what to connect to, how, and what to send."""

    def __missing__(self, key):
        return ""

    @property
    def address(self):
        return "127.0.0.1", int(self["port"])

    @property
    def connections(self):
        """Sizes to be echoed, for each connection."""
        return [[int(size) for size in sizes.split(",")] for sizes in self["echo"].split(";")]

    def say(self, number, **what):
        line = "\t".join([self["id"], str(number), *(f"{k}={v}" for k, v in what.items())])
        # In one piece: threads say things, too.
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    def failed(self, number, error, **what):
        self.say(number, **what, failed=" ".join(f"{type(error).__name__}: {error}".split()))


def run(connect_all):
    """Calls `connect_all(row)`, a generator of what to say of each connection, for every row."""
    for line in sys.stdin:
        row = Row(pair.split("=", 1) for pair in line.rstrip("\n").split("\t"))
        number = 0
        try:
            for number, said in enumerate(connect_all(row)):
                row.say(number, **said)
                number += 1
        except Exception as error:
            row.failed(number, error)


def echo(sizes, send, receive):
    """Sends so much and reads it back, up to 64 KiB under way. `receive(n)` gives at most n bytes, none at the end."""
    for size in sizes:
        lines = lines_of(size)
        for first in range(0, len(lines), 4):
            sent = b"".join(lines[first : first + 4])
            send(sent)
            got = bytearray()
            while len(got) < len(sent):
                some = receive(len(sent) - len(got))
                if not some:
                    raise EOFError(f"{len(got)} bytes of {len(sent)} came back")
                got += some
            if got != sent:
                raise ValueError(f"other bytes came back of {len(sent)}")
    return sum(sizes)
