"""A client that does one thing wrong, made of tlslite-ng. Rows on standard input; see README.md.

A row names an act of ACTS. What it says: the first alert that came (`none`; `hidden` when it was protected by keys that were not yet made),
its level, how the connection ended, and its own address, by which the server's line about it is found.
"""

import socket
import struct
import time

from tlslite.api import TLSConnection
from tlslite.constants import AlertDescription, ContentType, ExtensionType, HandshakeType
from tlslite.extensions import SignatureAlgorithmsExtension
from tlslite.messages import ApplicationData

from lies import (
    PATIENCE,
    Stopped,
    alert,
    changed,
    close,
    compression,
    converse,
    flip,
    half,
    handshake,
    in_plain,
    last_byte_of_record,
    perform_all,
    raw_first,
    record_first,
    reset,
    rewritten,
    send,
    stop,
    suites,
    twice,
    without,
)
from tlslite_ng import credentials_of, settings_of


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
# A line, which comes back, and a Kafka request (ApiVersions, by a client of the name LF), which is answered.
ASKED = bytes.fromhex("0000000b00120000000000010001") + b"\n"
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
    time.sleep(float(row["wait"] or 0))
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
            honest.write(ASKED)
            honest.read(2, 2)
            session = honest.session
    # From an address of its own, for ports come again.
    high, low = divmod(int(row["id"]), 250)
    with socket.create_connection(row.address, PATIENCE, (f"127.0.{high}.{low + 2}", 0)) as tcp:
        local = "{}:{}".format(*tcp.getsockname())

        def shake_hands(liar):
            if "bytes" in act:
                tcp.sendall(act["bytes"])
                raise Stopped
            liar.handshakeClientCert(settings=settings, session=session, **credentials_of(row))

        return converse(tcp, act, shake_hands) | {"local": local}


if __name__ == "__main__":
    perform_all(perform, ACTS)
