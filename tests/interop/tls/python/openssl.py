"""`openssl s_client`. Rows on standard input; see README.md.

Quiet, so that its output is data alone. What was agreed on is read from its trace of the messages.
"""

import re
import tempfile
from pathlib import Path

from program import Program
from rows import run
from stdlib import OPENSSL_NAMES

SUITES = {0x1301: "TLS_AES_128_GCM_SHA256", 0x1302: "TLS_AES_256_GCM_SHA384", 0x1303: "TLS_CHACHA20_POLY1305_SHA256"}
SUITES |= dict(zip([0xC02B, 0xC02C, 0xCCA9, 0xC02F, 0xC030, 0xCCA8], OPENSSL_NAMES))
GROUPS = {0x17: "secp256r1", 0x18: "secp384r1", 0x1D: "x25519"}
OPENSSL_GROUPS = {"secp256r1": "P-256", "secp384r1": "P-384", "x25519": "X25519"}

# The random of a ServerHello that is a HelloRetryRequest (RFC 8446, 4.1.3).
RETRY = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")


def messages(trace):
    """(direction, message, bytes) of every handshake message and alert."""
    pattern = r"(<<<|>>>) [^\n]*?, (?:Handshake|Alert) \[length \w+\], ([^\n]*)\n((?:    [^\n]*\n)*)"
    return [(way, name, bytes.fromhex(text)) for way, name, text in re.findall(pattern, trace)]


def agreed(trace):
    """What the messages say was agreed on."""
    told, kinds = {"version": "1.2", "retried": "no"}, set()
    for way, name, content in messages(trace):
        if way == "<<<":
            kinds.add(name)
        if way == "<<<" and name == "ServerHello":
            if content[6:38] == RETRY:
                told["retried"] = "yes"
                continue
            rest = content[39 + content[38] :]
            told["suite"] = SUITES.get(int.from_bytes(rest[:2], "big"), rest[:2].hex())
            extensions = rest[5:]
            while len(extensions) >= 4:
                number, count = (int.from_bytes(extensions[i : i + 2], "big") for i in (0, 2))
                value, extensions = extensions[4 : 4 + count], extensions[4 + count :]
                if number == 43 and value == b"\x03\x04":
                    told["version"] = "1.3"
                if number == 51:
                    told["group"] = GROUPS.get(int.from_bytes(value[:2], "big"), value[:2].hex())
        if way == "<<<" and name == "ServerKeyExchange":
            told["group"] = GROUPS.get(int.from_bytes(content[5:7], "big"), content[5:7].hex())
        if way == "<<<" and name == "KeyUpdate":
            told["updates"] = told.get("updates", 0) + 1
    told["resumed"] = "no" if "Certificate" in kinds else "yes"
    return told


def command_of(row, saved, trace):
    """`saved` is a session to resume, if there is one, and where the next is kept."""
    command = ["openssl", "s_client", "-quiet", "-no_ign_eof", "-msg", "-msgfile", trace]
    if not row["updates"]:
        command.append("-nocommands")
    command += ["-connect", "127.0.0.1:" + row["port"], "-CAfile", row["ca"], "-verify_return_error"]
    if row["name"][0].isdigit():
        command += ["-noservername", "-verify_ip", row["name"]]
    else:
        command += ["-servername", row["name"], "-verify_hostname", row["name"]]
    command.append("-tls" + row["version"].replace(".", "_"))
    if row["cert"]:
        command += ["-cert", row["cert"], "-cert_chain", row["cert"], "-key", row["key"]]
    if row["suite"]:
        command += ["-cipher", OPENSSL_NAMES[row["suite"]]] if row["version"] == "1.2" else ["-ciphersuites", row["suite"]]
    if row["group"]:
        command += ["-groups", ":".join(OPENSSL_GROUPS[group] for group in row["group"].split(":"))]
    if Path(saved).exists():
        command += ["-sess_in", saved]
    return [*command, "-sess_out", saved]


def update_keys(program):
    """New keys: ours, and ours with theirs asked for; something is echoed in between."""
    for turn, command in enumerate([b"k", b"K", b"K", b"k"]):
        program.say(command + b"\n", b"KEYUPDATE")
        line = b"after the update %d\n" % turn
        program.say(line, line)
    program.finish(b"")


def connect_all(row):
    with tempfile.TemporaryDirectory() as folder:
        saved, trace = Path(folder, "session"), Path(folder, "trace")
        for sizes in row.connections:
            program = Program(command_of(row, saved, trace))
            try:
                if row["updates"]:
                    update_keys(program)
                else:
                    program.converse(sizes)
            except Exception as error:
                alerts = [name for way, name, _ in messages(trace.read_text()) if way == "<<<" and "fatal" in name]
                raise ConnectionError(f"alert {alerts}; {error}") if alerts else error
            yield agreed(trace.read_text()) | {"echoed": len(program.echoed)}


if __name__ == "__main__":
    run(connect_all)
