"""What every client of this folder sends, so that each can check what it reads. The other languages follow the same plan (README.md)."""

import os
import sys
import time

BOOTSTRAP = os.environ["SKERRY_BOOTSTRAP"]
# PEM files: the CA that the broker's certificate is from, which means TLS; and a certificate of our own with its key.
CA = os.environ.get("SKERRY_CA")
IDENTITY = os.environ.get("SKERRY_IDENTITY")
RECORDS = int(os.environ.get("RECORDS", "10000"))
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
PARTITIONS = 3


def librdkafka():
    """librdkafka's settings for all that."""
    settings = {"bootstrap.servers": BOOTSTRAP}
    if CA:
        settings |= {"security.protocol": "ssl", "ssl.ca.location": CA}
    if IDENTITY:
        settings |= {"ssl.certificate.location": IDENTITY, "ssl.key.location": IDENTITY}
    return settings


class Plan:
    """One topic's worth of records: the record of an index is a pure function of the index, the codec and the first timestamp."""

    def __init__(self, client, codec, null_header):
        self.codec = codec
        self.null_header = null_header
        self.first_ms = int(time.time() * 1000) - RECORDS
        self.topic = f"{client}-{codec}-{self.first_ms}"
        self.group = f"{self.topic}-group"

    def key(self, index):
        return f"key-{index % 997}".encode()

    def value(self, index):
        return f"value-{index}-".encode() + b"skerry" * (index % 50)

    def headers(self, index):
        """A repeated name, an empty value and a null one: what a map could not hold."""
        headers = [
            ("index", str(index).encode()),
            ("codec", self.codec.encode()),
            ("index", b"again"),
            ("empty", b""),
        ]
        return headers + [("null", None)] if self.null_header else headers

    def timestamp(self, index):
        return self.first_ms + index

    def check(self, acked, read):
        """`acked`: index → (partition, offset). `read`: (partition, offset, key, value, headers, timestamp) in the order they came."""
        expect(len(acked) == RECORDS, f"{len(acked)} records acknowledged of {RECORDS}")
        index_of = {place: index for index, place in acked.items()}
        expect(len(index_of) == RECORDS, "two records were acknowledged at one place")
        following = {}
        for partition, offset, key, value, headers, timestamp in read:
            wanted = following.get(partition, 0)
            expect(offset == wanted, f"partition {partition}: offset {offset} came where {wanted} was next")
            following[partition] = offset + 1
            expect((partition, offset) in index_of, f"nothing was acknowledged at {partition}/{offset}")
            index = index_of[partition, offset]
            for name, got, want in [
                ("key", key, self.key(index)),
                ("value", value, self.value(index)),
                ("headers", list(headers or []), self.headers(index)),
                ("timestamp", timestamp, self.timestamp(index)),
            ]:
                expect(got == want, f"{name} of record {index} at {partition}/{offset}: {got!r}, not {want!r}")
        expect(sum(following.values()) == RECORDS, f"{sum(following.values())} records read of {RECORDS}")
        return following


class Failed(Exception):
    """A check that did not hold."""


def expect(holds, otherwise):
    if not holds:
        raise Failed(otherwise)


def until(seconds, what):
    """Yields until the caller breaks off, and fails once `seconds` have passed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield
    raise Failed(f"{what}: not within {seconds} s")


def roundtrips(client, roundtrip, null_header=True):
    """Runs `roundtrip(plan)` for the codecs named on the command line, or all; the exit code says whether each passed."""
    failed = 0
    codecs = sys.argv[2:] or CODECS
    for codec in codecs:
        plan = Plan(client, codec, null_header)
        began = time.monotonic()
        try:
            roundtrip(plan)
            print(f"ok   {client} {codec}: {RECORDS} records in {time.monotonic() - began:.1f} s", flush=True)
        except Exception as error:  # Whatever a client raises is that codec's failure; the others still run.
            failed += 1
            print(f"FAIL {client} {codec}: {type(error).__name__}: {error}", flush=True)
    print(f"{len(codecs) - failed} passed, {failed} failed", flush=True)
    sys.exit(1 if failed else 0)
