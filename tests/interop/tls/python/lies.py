"""What a peer made of tlslite-ng can do wrong: it asks a table of lies, by the name of a message, what to do instead of sending it."""

import socket
import struct
import threading

from tlslite.api import TLSConnection
from tlslite.constants import AlertDescription, AlertLevel, ContentType
from tlslite.errors import TLSAbruptCloseError, TLSRemoteAlert
from tlslite.messages import Message

from rows import run

PATIENCE = 20  # seconds without the end of a step; not a measure of anything


class Stopped(Exception):
    """Nothing more is to be sent."""


class Liar(TLSConnection):
    """Asks `lies`, by the name of a message that is about to be sent, what to do instead."""

    def __init__(self, tcp, lies):
        super().__init__(tcp)
        self.lies, self.hellos, self.tcp = lies, 0, tcp
        self.closeSocket = False

    def _sendMsg(self, msg, *rest, **named):
        name = type(msg).__name__
        if name == "ClientHello":
            self.hellos += 1
            name = "ClientHello" if self.hellos == 1 else "SecondClientHello"
        lie = self.lies.pop(name, None)
        yield from lie(self, msg) if lie else super()._sendMsg(msg, *rest, **named)

    def _queue_message(self, msg):
        # A server's flight, too, one message to a record.
        for _ in self._sendMsg(msg):
            pass

    def _queue_flush(self):
        return iter(())

    def truth(self, msg):
        """Sends the message, and takes it into the transcript."""
        yield from super()._sendMsg(msg)

    def record(self, kind, content):
        """Sends such a record under the keys of the moment, outside of the transcript."""
        yield from self._recordLayer.sendRecord(Message(kind, bytearray(content)))

    def raw(self, content):
        """Sends such bytes."""
        self.sock.flush()
        self.tcp.sendall(bytes(content))
        return iter(())


def handshake(kind, body):
    return bytes([kind]) + len(body).to_bytes(3, "big") + bytes(body)


# What is done instead of sending a message.


def stop(liar, _):
    liar.sock.flush()
    raise Stopped
    yield


def reset(liar, _):
    liar.sock.flush()
    liar.tcp.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    liar.tcp.close()
    raise Stopped
    yield


def close(liar, _):
    liar.sock.flush()
    liar.tcp.shutdown(socket.SHUT_WR)
    raise Stopped
    yield


def half(then):
    """Half of the message in a record of its own, then this."""

    def lie(liar, msg):
        content = msg.write()
        yield from liar.record(msg.contentType, content[: len(content) // 2])
        yield from then(liar, msg)

    return lie


def record_first(kind, content):
    """Such a record, then the message."""

    def lie(liar, msg):
        yield from liar.record(kind, content)
        yield from liar.truth(msg)

    return lie


def raw_first(content):
    """Such bytes, then the message."""

    def lie(liar, msg):
        yield from liar.raw(content)
        yield from liar.truth(msg)

    return lie


def twice(liar, msg):
    yield from liar.truth(msg)
    # The record of a hello has an older version, which a second one must not.
    if type(msg).__name__ == "ClientHello":
        yield from in_plain(liar, msg)
    else:
        yield from liar.record(msg.contentType, msg.write())


def changed(change):
    """The message after `change(msg)`."""

    def lie(liar, msg):
        change(msg)
        yield from liar.truth(msg)

    return lie


def rewritten(rewrite):
    """`rewrite(bytes)` instead of the message."""

    def lie(liar, msg):
        yield from liar.record(msg.contentType, rewrite(bytes(msg.write())))

    return lie


def in_plain(liar, msg):
    """The message in a record without protection."""
    content = msg.write()
    yield from liar.raw(struct.pack("!BHH", msg.contentType, 0x0303, len(content)) + content)


def last_byte_of_record(liar, msg):
    """The message in a record whose last byte is another."""
    there = liar._recordLayer._recordSocket
    honest = there.send

    def send(message, padding=0):
        message.data[-1] ^= 1
        there.send = honest
        return honest(message, padding)

    there.send = send
    yield from liar.truth(msg)


def alert(number):
    """A fatal alert instead of the message."""

    def lie(liar, _):
        yield from liar.record(ContentType.alert, bytes([AlertLevel.fatal, number]))
        liar.sock.flush()
        raise Stopped

    return lie


# What is wrong with a message.


def flip(field):
    def change(msg):
        value = bytearray(getattr(msg, field))
        value[-1] ^= 1
        setattr(msg, field, value)

    return changed(change)


def without(number):
    """A hello without this extension."""

    def change(msg):
        msg.extensions = [one for one in msg.extensions if one.extType != number]

    return changed(change)


def suites(*numbers):
    def change(msg):
        msg.cipher_suites = list(numbers)

    return changed(change)


def compression(*numbers):
    def change(msg):
        msg.compression_methods = list(numbers)

    return changed(change)


# What is done once the handshake is over.


def send(*records):
    def after(liar):
        for kind, content in records:
            for _ in liar.record(kind, content):
                pass

    return after


def converse(tcp, act, shake_hands, reads=1):
    """Does what an act says, around a handshake; what came of it. A server reads what is sent back, and once more."""
    liar = Liar(tcp, dict(act.get("lies", {})))
    try:
        shake_hands(liar)
        if liar.lies:
            raise ValueError(f"the handshake was over without {', '.join(liar.lies)}")
        try:
            act.get("after", lambda _: None)(liar)
            # Whoever does not mind sends this back.
            send((ContentType.application_data, b"x\n"))(liar)
        except OSError:
            pass  # What came before tells why.
        told = {"alert": "none", "data": [liar.read(2, 1).decode().strip() for _ in range(reads)][0]}
        tcp.shutdown(socket.SHUT_WR)
    except Stopped:
        told = last_words(tcp)
    except TLSRemoteAlert as came:
        told = {"alert": AlertDescription.toRepr(came.description) or came.description, "level": came.level}
    except TLSAbruptCloseError:
        told = {"alert": "none"}
    return told | {"end": end_of(tcp)}


def last_words(tcp):
    """The first alert that comes, read without keys."""
    stream, told = tcp.makefile("rb"), {"alert": "none"}
    try:
        while told["alert"] == "none" and (header := stream.read(5)):
            kind, _, count = struct.unpack("!BHH", header)
            content = stream.read(count)
            if kind == ContentType.alert and count == 2:
                told = {"alert": AlertDescription.toRepr(content[1]), "level": content[0]}
            elif kind != ContentType.handshake and count in (18, 19, 26):
                # Its two bytes, perhaps TLS 1.3's content type or TLS 1.2's explicit nonce, the tag.
                told = {"alert": "hidden"}
    except (OSError, ValueError):
        pass
    return told


def end_of(tcp):
    if tcp.fileno() < 0:
        return "ours"
    try:
        while tcp.recv(1 << 16):
            pass
        return "fin"
    except ConnectionResetError:
        return "reset"


def perform_all(perform, acts):
    """`perform(row)` for every row. The patience of the other side is tried by all silent ones at once."""
    waiting = []

    def attempt(row):
        try:
            row.say(0, **perform(row))
        except Exception as error:
            row.failed(0, error)

    def one(row):
        if acts[row["act"]].get("slow"):
            waiting.append(threading.Thread(target=attempt, args=[row]))
            waiting[-1].start()
        else:
            attempt(row)
        return ()

    run(one)
    for thread in waiting:
        thread.join()
