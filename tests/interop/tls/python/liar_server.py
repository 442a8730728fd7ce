"""A server that does one thing wrong, made of tlslite-ng. Rows on standard input; see README.md.

For each row it starts the client that the row names, with the address to connect to at the end, lets it have one connection, and does an
act of ACTS. What it says: the first alert that came, how the connection ended, and what the client says of it.
"""

import json
import shlex
import socket
import subprocess

from tlslite.api import HandshakeSettings
from tlslite.constants import AlertDescription, ContentType, ExtensionType, HandshakeType
from tlslite.extensions import TLSExtension

from lies import (
    PATIENCE,
    Stopped,
    alert,
    changed,
    close,
    converse,
    flip,
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
    twice,
)
from tlslite_ng import VERSIONS, credentials_of


def assigned(field, value):
    def change(msg):
        setattr(msg, field, value)

    return changed(change)


def sentinel(msg):
    """The random of a server that could do better (RFC 8446, 4.1.3)."""
    msg.random = bytearray(msg.random[:24]) + b"DOWNGRD\1"


def unasked(msg):
    msg.extensions = [*(msg.extensions or []), TLSExtension(extType=ExtensionType.heartbeat).create(15, bytearray(b"\1"))]


def share_of(group, value):
    def change(msg):
        share = msg.getExtension(ExtensionType.key_share).server_share
        share.group, share.key_exchange = group, bytearray(value)

    return changed(change)


def no_certificate(msg):
    msg.certificate_list = []


EMPTY_CHAIN = {"1.3": handshake(HandshakeType.certificate, bytes(4)), "1.2": handshake(HandshakeType.certificate, bytes(3))}

ACTS = {
    "honest": {},
    "http": {"bytes": b"HTTP/1.1 400 Bad Request\r\n\r\n"},
    "garbage": {"bytes": bytes(range(1, 64))},
    "other suite": {"lies": {"ServerHello": assigned("cipher_suite", 0x1304)}},
    "old suite": {"lies": {"ServerHello": assigned("cipher_suite", 0x002F)}},
    "old version": {"lies": {"ServerHello": assigned("server_version", (3, 2))}},
    "compression": {"lies": {"ServerHello": assigned("compression_method", 1)}},
    "other session": {"lies": {"ServerHello": assigned("session_id", bytearray(32))}},
    "downgrade": {"lies": {"ServerHello": changed(sentinel)}},
    "unasked extension": {"lies": {"ServerHello": changed(unasked)}},
    "unasked encrypted extension": {"lies": {"EncryptedExtensions": changed(unasked)}},
    "share of zeros": {"lies": {"ServerHello": share_of(0x1D, bytes(32))}},
    "share of another group": {"lies": {"ServerHello": share_of(0x18, b"\4" + bytes(96))}},
    "no certificate": {"lies": {"Certificate": rewritten(lambda content: EMPTY_CHAIN["1.3"])}},
    "no certificate at all": {"lies": {"Certificate": rewritten(lambda content: EMPTY_CHAIN["1.2"])}},
    "wrong signature": {"lies": {"CertificateVerify": flip("signature")}},
    "wrong signature of a share": {"lies": {"ServerKeyExchange": flip("signature")}},
    "wrong finished": {"lies": {"Finished": flip("verify_data")}},
    "broken record": {"lies": {"Finished": last_byte_of_record}},
    "finished in plain": {"lies": {"Finished": in_plain}},
    "unknown record": {"lies": {"Finished": record_first(99, b"?")}},
    "oversized hello": {"lies": {"ServerHello": raw_first(b"\x16\3\3\x40\1" + bytes(0x4001))}},
    "alert of no known number": {"lies": {"ServerHello": alert(200)}},
    "empty records": {"after": send(*[(ContentType.application_data, b"")] * 1000)},
    "certificate after": {"after": send((ContentType.handshake, EMPTY_CHAIN["1.2"]))},
    "hello_request after": {"after": send((ContentType.handshake, handshake(0, b"")))},
}

STEPS = "ServerHello EncryptedExtensions Certificate CertificateVerify ServerKeyExchange ServerHelloDone ChangeCipherSpec Finished"
for step in STEPS.split():
    ACTS |= {
        f"data before {step}": {"lies": {step: record_first(ContentType.application_data, b"x\n")}},
        f"hello_request before {step}": {"lies": {step: record_first(ContentType.handshake, handshake(0, b""))}},
        f"client_hello before {step}": {"lies": {step: record_first(ContentType.handshake, handshake(1, bytes(40)))}},
        f"alert at {step}": {"lies": {step: alert(AlertDescription.bad_certificate)}},
        f"close at {step}": {"lies": {step: close}},
        f"reset at {step}": {"lies": {step: reset}},
        f"silence at {step}": {"lies": {step: stop}, "slow": True},
        f"{step} twice": {"lies": {step: twice}},
    }


def perform(row):
    """Does what the row names; what came of it."""
    act = ACTS[row["act"]]
    settings = HandshakeSettings()
    settings.minVersion = settings.maxVersion = VERSIONS[row["version"]]
    settings.versions = [VERSIONS[row["version"]]]
    settings.eccCurves, settings.dhGroups = ["x25519", "secp256r1"], []
    settings.certificate_compression_send = settings.certificate_compression_receive = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = "{}:{}".format(*listener.getsockname())
        client = subprocess.Popen([*shlex.split(row["client"]), address], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        listener.settimeout(PATIENCE)
        tcp, _ = listener.accept()
        with tcp:
            tcp.settimeout(PATIENCE)

            def shake_hands(liar):
                if "bytes" in act:
                    tcp.sendall(act["bytes"])
                    raise Stopped
                liar.handshakeServer(settings=settings, **credentials_of(row))

            told = converse(tcp, act, shake_hands, reads=2)
        output, errors = client.communicate(timeout=PATIENCE)
    lines = output.decode().splitlines()
    if not lines:
        raise ValueError(f"the client says nothing: {errors.decode()}")
    report = json.loads(lines[0])
    return told | {f"client_{key}": report[key] for key in ("cause", "alert", "version")}


if __name__ == "__main__":
    perform_all(perform, ACTS)
