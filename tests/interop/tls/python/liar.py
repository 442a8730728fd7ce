"""A client that does one thing wrong, made of tlslite-ng. Rows on standard input; see README.md.

A row names an act of ACTS. What it says: the first alert that came (`none`; `hidden` when it was protected by keys that were not yet made),
its level, how the connection ended, and its own address, by which the server's line about it is found.
"""

import socket
import struct
import threading

from tlslite.api import TLSConnection
from tlslite.constants import AlertDescription, AlertLevel, ContentType, ExtensionType, HandshakeType
from tlslite.errors import TLSAbruptCloseError, TLSRemoteAlert
from tlslite.extensions import SignatureAlgorithmsExtension
from tlslite.messages import ApplicationData, Message

from rows import run
from tlslite_ng import credentials_of, settings_of

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


def ed25519_only(msg):
    msg.extensions = [
        SignatureAlgorithmsExtension().create([(8, 7)]) if one.extType == ExtensionType.signature_algorithms else one
        for one in msg.extensions
    ]


def first_extension_twice(msg):
    msg.extensions = [msg.extensions[0], *msg.extensions]


def share_of(value):
    """A hello whose share is this, whatever its group."""

    def change(msg):
        msg.getExtension(ExtensionType.key_share).client_shares[0].key_exchange = bytearray(value)

    return changed(change)


def wrong_binder(msg):
    msg.extensions[-1].binders[0][-1] ^= 1


def a_byte_more(content):
    return handshake(content[0], content[4:] + b"\0")


# What is done once the handshake is over.


def send(*records):
    def after(liar):
        for kind, content in records:
            for _ in liar.record(kind, content):
                pass

    return after


def oversized(liar):
    liar.tcp.sendall(struct.pack("!BHH", ContentType.application_data, 0x0303, 0x4000 + 257 + 8))
    liar.tcp.sendall(bytes(0x4000 + 257 + 8))


def plain_data(liar):
    liar.tcp.sendall(struct.pack("!BHH", ContentType.handshake, 0x0303, 4) + handshake(0, b""))


def hello_again(liar):
    hello = handshake(HandshakeType.client_hello, bytes.fromhex("0303") + bytes(32) + bytes.fromhex("000002c02f0100"))
    send((ContentType.handshake, hello), (ContentType.handshake, hello))(liar)


def many_key_updates(liar):
    for _ in range(1000):
        for _ in liar.send_keyupdate_request(0):
            pass


# Bytes in place of TLS.
KAFKA = bytes.fromhex("00000017001200030000000100067265616465720007736b657272790431")
HTTP = b"GET / HTTP/1.1\r\nHost: skerry.test\r\n\r\n"
SSLV2 = bytes.fromhex("802e0100020015000000100700c00300800100800600400400800200800000") + bytes(17)

# Each: lies by message, or bytes in place of everything, and what is done after the handshake.
ACTS = {
    "honest": {},
    "kafka": {"bytes": KAFKA},
    "http": {"bytes": HTTP},
    "sslv2": {"bytes": SSLV2},
    "garbage": {"bytes": bytes(range(1, 64))},
    "record of SSL 2.0": {"bytes": bytes.fromhex("16020000050100000100")},
    "old versions": {"versions": ((3, 1), (3, 2))},
    "fallback": {"fallback": True},
    "other suites": {"lies": {"ClientHello": suites(0x1304, 0x002F, 0xC013)}},
    "other groups": {"groups": ["secp384r1"]},
    "other schemes": {"lies": {"ClientHello": changed(ed25519_only)}},
    "no groups": {"lies": {"ClientHello": without(ExtensionType.supported_groups)}},
    "no shares": {"lies": {"ClientHello": without(ExtensionType.key_share)}},
    "no schemes": {"lies": {"ClientHello": without(ExtensionType.signature_algorithms)}},
    "a byte too many": {"lies": {"ClientHello": rewritten(a_byte_more)}},
    "extension twice": {"lies": {"ClientHello": changed(first_extension_twice)}},
    "compression": {"lies": {"ClientHello": compression(1, 0)}},
    "long hello": {"lies": {"ClientHello": rewritten(lambda _: handshake(1, bytes(0x20000))[:16000])}},
    "share of zeros": {"groups": ["x25519"], "lies": {"ClientHello": share_of(bytes(32))}},
    "share off the curve": {"groups": ["secp256r1"], "lies": {"ClientHello": share_of(b"\4" + b"\1" * 64)}},
    "share too short": {"groups": ["x25519"], "lies": {"ClientHello": share_of(bytes([9]) * 31)}},
    "other second hello": {"groups": ["secp384r1", "secp256r1"], "lies": {"SecondClientHello": suites(0x1303)}},
    "binder": {"lies": {"ClientHello": changed(wrong_binder)}, "resume": True},
    "oversized hello": {"lies": {"ClientHello": raw_first(struct.pack("!BHH", 22, 0x0301, 0x4001) + bytes(0x4001))}},
    "oversized data": {"after": oversized},
    "unknown record": {"lies": {"Finished": record_first(99, b"?")}},
    "unknown plain record": {"lies": {"ClientKeyExchange": record_first(99, b"?")}},
    "empty handshake record": {"lies": {"ClientKeyExchange": record_first(ContentType.handshake, b"")}},
    "broken record": {"lies": {"Finished": last_byte_of_record}},
    "finished in plain": {"lies": {"Finished": in_plain}},
    "plain record": {"after": plain_data},
    "broken data": {"after": lambda liar: [None for _ in last_byte_of_record(liar, ApplicationData().create(b"x\n"))]},
    "empty records": {"after": send(*[(ContentType.application_data, b"")] * 1000)},
    "warnings": {"after": send(*[(ContentType.alert, bytes([1, 90]))] * 1000)},
    "key updates": {"after": many_key_updates},
    "renegotiation": {"after": hello_again},
    "finished after": {"after": send((ContentType.handshake, handshake(HandshakeType.finished, bytes(32))))},
    "change_cipher_spec after": {"after": send((ContentType.change_cipher_spec, b"\1"))},
    "two change_cipher_specs": {"lies": {"ChangeCipherSpec": twice}},
    "change_cipher_spec of 2": {"lies": {"ChangeCipherSpec": rewritten(lambda _: b"\2")}},
    "wrong finished": {"lies": {"Finished": flip("verify_data")}},
    "wrong signature": {"lies": {"CertificateVerify": flip("signature")}},
    "alert of no known number": {"lies": {"Finished": alert(200)}},
}

# Messages in the wrong place, and ends at each step.
STEPS = ["ClientHello", "SecondClientHello", "Certificate", "CertificateVerify", "ClientKeyExchange", "ChangeCipherSpec", "Finished"]
for step in STEPS:
    ACTS |= {
        f"data before {step}": {"lies": {step: record_first(ContentType.application_data, b"x\n")}},
        f"hello_request before {step}": {"lies": {step: record_first(ContentType.handshake, handshake(0, b""))}},
        f"alert at {step}": {"lies": {step: alert(AlertDescription.bad_certificate)}},
        f"close at {step}": {"lies": {step: close}},
        f"reset at {step}": {"lies": {step: reset}},
        f"silence at {step}": {"lies": {step: stop}, "slow": True},
        f"{step} twice": {"lies": {step: twice}},
        f"half of {step}, then close": {"lies": {step: half(close)}},
        f"half of {step}, then reset": {"lies": {step: half(reset)}},
        f"half of {step}, then silence": {"lies": {step: half(stop)}, "slow": True},
    }


def perform(row):
    """Does what the row names; what came of it."""
    act = ACTS[row["act"]]
    settings = settings_of(row)
    if "versions" in act:
        settings.minVersion, settings.maxVersion = act["versions"]
        settings.versions = [(3, 2), (3, 1)]
    if "groups" in act:
        settings.eccCurves, settings.keyShares = act["groups"], act["groups"][:1]
    settings.sendFallbackSCSV = act.get("fallback", False)
    session = None
    if act.get("resume"):
        with socket.create_connection(row.address, PATIENCE) as tcp:
            honest = TLSConnection(tcp)
            honest.handshakeClientCert(settings=settings, **credentials_of(row))
            honest.write(b"x\n")
            honest.read(2, 2)
            session = honest.session
    # From an address of its own, for ports come again.
    high, low = divmod(int(row["id"]), 250)
    with socket.create_connection(row.address, PATIENCE, (f"127.0.{high}.{low + 2}", 0)) as tcp:
        local = "{}:{}".format(*tcp.getsockname())
        liar = Liar(tcp, dict(act.get("lies", {})))
        try:
            if "bytes" in act:
                tcp.sendall(act["bytes"])
                raise Stopped
            liar.handshakeClientCert(settings=settings, session=session, **credentials_of(row))
            if liar.lies:
                raise ValueError(f"the handshake was over without {', '.join(liar.lies)}")
            try:
                act.get("after", lambda _: None)(liar)
                # Whoever does not mind sends this back.
                send((ContentType.application_data, b"x\n"))(liar)
            except OSError:
                pass  # What came before tells why.
            told = {"alert": "none", "data": liar.read(2, 1).decode().strip()}
            tcp.shutdown(socket.SHUT_WR)
        except Stopped:
            told = last_words(tcp)
        except TLSRemoteAlert as came:
            told = {"alert": AlertDescription.toRepr(came.description) or came.description, "level": came.level}
        except TLSAbruptCloseError:
            told = {"alert": "none"}
        return told | {"end": end_of(tcp), "local": local}


def last_words(tcp):
    """The first alert that comes, read without keys."""
    stream, told = tcp.makefile("rb"), {"alert": "none"}
    try:
        while told["alert"] == "none" and (header := stream.read(5)):
            kind, _, count = struct.unpack("!BHH", header)
            content = stream.read(count)
            if kind == ContentType.alert and count == 2:
                told = {"alert": AlertDescription.toRepr(content[1]), "level": content[0]}
            elif kind != ContentType.handshake and count in (19, 26):
                # Its two bytes, TLS 1.3's content type or TLS 1.2's explicit nonce, the tag.
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


def attempt(row):
    try:
        row.say(0, **perform(row))
    except Exception as error:
        row.failed(0, error)


def main():
    """The patience of the server is tried by all silent ones at once."""
    waiting = []

    def one(row):
        if ACTS[row["act"]].get("slow"):
            waiting.append(threading.Thread(target=attempt, args=[row]))
            waiting[-1].start()
        else:
            attempt(row)
        return ()

    run(one)
    for thread in waiting:
        thread.join()


if __name__ == "__main__":
    main()
