"""Sits between clients and a broker and keeps what they say to each other, as golden bytes for the codec's tests.

  proxy.py LISTEN BROKER FOLDER     e.g. 127.0.0.1:22003 127.0.0.1:22002 tests/golden/kcat-1.7.1

The broker must advertise LISTEN, or clients go past the proxy after their first request. For every API and version up to two requests
are kept, the first and a longer one, with the reply of the first:

  <Api>-v<N>.bin  <Api>-v<N>-long.bin  <Api>-v<N>.reply.bin      each a frame without its length prefix

The broker's ApiVersions replies are narrowed to `ADVERTISED` on the way, so that clients speak the versions Skerry answers even when the
broker behind is another that answers more.
"""

import asyncio
import pathlib
import struct
import sys

# API key → name, lowest and highest version advertised.
ADVERTISED = {
    0: ("Produce", 0, 13), 1: ("Fetch", 4, 17), 2: ("ListOffsets", 1, 10), 3: ("Metadata", 0, 13),
    8: ("OffsetCommit", 2, 9), 9: ("OffsetFetch", 1, 9), 10: ("FindCoordinator", 0, 6), 11: ("JoinGroup", 0, 9),
    12: ("Heartbeat", 0, 4), 13: ("LeaveGroup", 0, 5), 14: ("SyncGroup", 0, 5), 15: ("DescribeGroups", 0, 6),
    16: ("ListGroups", 0, 5), 18: ("ApiVersions", 0, 4), 19: ("CreateTopics", 2, 7), 20: ("DeleteTopics", 1, 6),
    22: ("InitProducerId", 0, 5), 23: ("OffsetForLeaderEpoch", 2, 4), 32: ("DescribeConfigs", 1, 4),
    42: ("DeleteGroups", 0, 2), 60: ("DescribeCluster", 0, 2),
}
API_VERSIONS = 18
LONG_BYTES_MAX = 4096
REPLY_BYTES_MAX = 4096


def varint(number):
    out = b""
    while number >= 0x80:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def unvarint(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, at


def narrowed(reply, version):
    """An ApiVersions reply that keeps only what `ADVERTISED` has. Its header has no tagged fields in any version."""
    flexible = version >= 3
    at = 6  # correlation id, error code
    if flexible:
        count, at = unvarint(reply, at)
        count -= 1
    else:
        count, at = struct.unpack_from(">i", reply, at)[0], at + 4
    kept = []
    for _ in range(count):
        key, low, high = struct.unpack_from(">hhh", reply, at)
        at += 6
        if flexible:
            assert reply[at] == 0, "a tagged field where none is known"
            at += 1
        if key in ADVERTISED:
            _, lowest, highest = ADVERTISED[key]
            kept.append((key, max(low, lowest), min(high, highest)))
    body = b"".join(struct.pack(">hhh", *one) + (b"\0" if flexible else b"") for one in kept)
    length = varint(len(kept) + 1) if flexible else struct.pack(">i", len(kept))
    return reply[:6] + length + body + reply[at:]


class Keeper:
    """The files of one folder: what is there already is kept from an earlier run."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def request(self, name, version, frame):
        """Keeps a request; answers whether its reply is wanted too."""
        first = self.folder / f"{name}-v{version}.bin"
        longer = self.folder / f"{name}-v{version}-long.bin"
        if not first.exists() and len(frame) <= LONG_BYTES_MAX:
            first.write_bytes(frame)
            return True
        longest = max(p.stat().st_size for p in (first, longer) if p.exists()) if first.exists() else 0
        if longest + 16 < len(frame) <= LONG_BYTES_MAX:
            longer.write_bytes(frame)
        return False

    def reply(self, name, version, frame):
        if len(frame) <= REPLY_BYTES_MAX:
            (self.folder / f"{name}-v{version}.reply.bin").write_bytes(frame)


async def frames(reader):
    try:
        while True:
            (length,) = struct.unpack(">i", await reader.readexactly(4))
            yield await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError):
        return


async def requests(reader, writer, back, keeper, asked):
    async for frame in frames(reader):
        key, version, correlation = struct.unpack_from(">hhi", frame)
        name, _, highest = ADVERTISED.get(key, (f"Key{key}", 0, 0))
        if key == API_VERSIONS and version > highest:
            # UNSUPPORTED_VERSION with the range, in version 0: the client asks again with what it may.
            reply = struct.pack(">ihihhh", correlation, 35, 1, API_VERSIONS, 0, highest)
            back.write(struct.pack(">i", len(reply)) + reply)
            continue
        asked[correlation] = (key, name, version, keeper.request(name, version, frame))
        writer.write(struct.pack(">i", len(frame)) + frame)
        await writer.drain()
    writer.close()


async def replies(reader, writer, keeper, asked):
    async for frame in frames(reader):
        (correlation,) = struct.unpack_from(">i", frame)
        key, name, version, wanted = asked.pop(correlation)
        error = struct.unpack_from(">h", frame, 4)[0] if key == API_VERSIONS else 0
        if key == API_VERSIONS and error == 0:
            frame = narrowed(frame, version)
        if wanted and error == 0:
            keeper.reply(name, version, frame)
        try:
            writer.write(struct.pack(">i", len(frame)) + frame)
            await writer.drain()
        except ConnectionError:
            break
    writer.close()


async def main(listen, broker, folder):
    keeper = Keeper(pathlib.Path(folder))

    async def connection(reader, writer):
        host, port = broker.rsplit(":", 1)
        try:
            far_reader, far_writer = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.close()
            return
        asked = {}
        await asyncio.gather(requests(reader, far_writer, writer, keeper, asked), replies(far_reader, writer, keeper, asked))

    host, port = listen.rsplit(":", 1)
    server = await asyncio.start_server(connection, host, int(port))
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
