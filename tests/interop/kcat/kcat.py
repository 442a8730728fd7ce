"""kcat against the broker: produce, list, consume in a group, check all.

  kcat.py roundtrip [CODEC…]

kcat stamps records with its own clock and gives every record of a run the same headers, so the records go in runs of `RUN`, each with a
header of its own, and a timestamp is checked to lie within its run. It has no commands for creating and deleting topics: the
broker creates the topic when it is first named.
"""

import pathlib
import re
import subprocess
import sys
import time

sys.path.append(str(pathlib.Path(__file__).parent.parent / "python"))

from plan import RECORDS, expect, librdkafka, roundtrips  # noqa: E402

RUN = 2500
# Between fields and after a record: characters that no key or value has.
FORMAT = "%t|%p|%o|%T|%k|%s|%h\n"


def kcat(*arguments, input=None, timeout=120):
    common = [argument for name, value in librdkafka().items() for argument in ("-X", f"{name}={value}")]
    done = subprocess.run(["kcat", *common, *arguments], input=input, capture_output=True, text=True, timeout=timeout)
    expect(done.returncode == 0, f"kcat {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


def roundtrip(plan):
    windows = produce(plan)
    listing = kcat("-L", "-t", plan.topic)
    count = int(re.search(r'topic ".*" with (\d+) partitions', listing)[1])

    # -e ends at the end of every partition; a group's first join may find none, so the run has a limit of its own.
    lines = kcat(
        "-G", plan.group, plan.topic, "-X", "auto.offset.reset=earliest", "-X", "enable.partition.eof=true",
        "-c", str(RECORDS), "-f", FORMAT,
    ).splitlines()
    following = check(plan, lines, windows)

    # What the group committed when kcat left: a second member finds nothing more to read.
    again = kcat("-G", plan.group, plan.topic, "-X", "auto.offset.reset=earliest", "-e", "-f", FORMAT)
    expect(again == "", f"read again after commit: {again[:200]}")

    for partition in range(count):
        ends = kcat("-Q", "-t", f"{plan.topic}:{partition}:-1", "-t", f"{plan.topic}:{partition}:-2")
        at = int(re.search(r"offset (\d+)", ends)[1])
        expect(at in (0, following.get(partition, 0)), f"partition {partition}: asked for its ends, got {ends}")


def produce(plan):
    """Answers when each run began and ended, in milliseconds."""
    windows = []
    codec = ["-z", plan.codec]
    for first in range(0, RECORDS, RUN):
        lines = "".join(
            f"{plan.key(index).decode()}\t{plan.value(index).decode()}\n" for index in range(first, min(first + RUN, RECORDS))
        )
        began = int(time.time() * 1000)
        kcat(
            "-P", "-t", plan.topic, "-K", "\t", *codec, "-X", "acks=all",
            "-H", f"run={first // RUN}", "-H", f"codec={plan.codec}", "-H", "run=again", input=lines,
        )
        windows.append((began, int(time.time() * 1000)))
    return windows


def check(plan, lines, windows):
    following, seen = {}, set()
    for line in lines:
        topic, partition, offset, timestamp, key, value, headers = line.split("|")
        partition, offset = int(partition), int(offset)
        index = int(value.split("-")[1])
        run = index // RUN
        began, ended = windows[run]
        expect(offset == following.get(partition, 0), f"partition {partition}: offset {offset}, {following.get(partition, 0)} was next")
        following[partition] = offset + 1
        seen.add(index)
        for name, got, want in [
            ("topic", topic, plan.topic),
            ("key", key, plan.key(index).decode()),
            ("value", value, plan.value(index).decode()),
            ("headers", headers, f"run={run},codec={plan.codec},run=again"),
        ]:
            expect(got == want, f"{name} of record {index}: {got!r}, not {want!r}")
        expect(began <= int(timestamp) <= ended, f"timestamp of record {index}: {timestamp}, sent from {began} to {ended}")
    expect(len(seen) == RECORDS == len(lines), f"{len(lines)} records read, {len(seen)} of them different, {RECORDS} sent")
    return following


if __name__ == "__main__":
    expect(sys.argv[1:2] == ["roundtrip"], __doc__)
    roundtrips("kcat", roundtrip)
