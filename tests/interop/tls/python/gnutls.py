"""`gnutls-cli`. Rows on standard input; see README.md.

It resumes within one run: of two connections the first carries no data. `record_size` in a row is the limit that it asks for (RFC 8449).
"""

import re
import tempfile
from pathlib import Path

from program import Program
from rows import run

VERSIONS = {"1.2": "+VERS-TLS1.2", "1.3": "+VERS-TLS1.3"}
GROUPS = {"secp256r1": "GROUP-SECP256R1", "secp384r1": "GROUP-SECP384R1", "x25519": "GROUP-X25519"}
CIPHERS = {"AES_128_GCM": "AES-128-GCM", "AES_256_GCM": "AES-256-GCM", "CHACHA20_POLY1305": "CHACHA20-POLY1305"}


def priority(row):
    words = ["NORMAL", "-VERS-ALL", VERSIONS[row["version"]]]
    if row["suite"]:
        words += ["-CIPHER-ALL", *("+" + theirs for ours, theirs in CIPHERS.items() if ours in row["suite"])]
    if row["group"]:
        words += ["-GROUP-ALL", *("+" + GROUPS[group] for group in row["group"].split(":"))]
    return ":".join(words)


def command_of(row, log):
    command = ["gnutls-cli", "--port", row["port"], "--x509cafile", row["ca"], "--priority", priority(row)]
    command += ["--logfile", log, "--verify-hostname", row["name"], "--waitresumption"]
    command += ["--disable-sni"] if row["name"][0].isdigit() else ["--sni-hostname", row["name"]]
    if row["cert"]:
        command += ["--x509certfile", row["cert"], "--x509keyfile", row["key"]]
    if ":" in row["group"]:
        command.append("--single-key-share")
    if row["record_size"]:
        command += ["--recordsize", row["record_size"]]
    if len(row.connections) == 2:
        command.append("--resume")
    return [*command, "127.0.0.1"]


def agreed(report):
    """What its description of a session says: (TLS1.3-X.509)-(ECDHE-X25519)-(RSA-PSS-RSAE-SHA256)-(AES-128-GCM)."""
    description = re.search(r"- Description: \(TLS([\d.]+).*", report)
    told = {"version": description[1], "resumed": "yes" if "*** This is a resumed session" in report else "no"}
    cipher = next(ours for ours, theirs in CIPHERS.items() if f"({theirs})" in description[0])
    told["cipher"] = cipher
    for name, theirs in GROUPS.items():
        if f"(ECDHE{theirs.removeprefix('GROUP')})" in description[0]:
            told["group"] = name
    return told


def connect_all(row):
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        program = Program(command_of(row, log))
        try:
            program.converse(row.connections[-1])
        except Exception as error:
            report = log.read_text() if log.exists() else ""
            raise ConnectionError(f"{error}; {report[-600:]}") from error
        reports = log.read_text().split("Connecting to ")[1:]
        for report, sizes in zip(reports, row.connections, strict=True):
            yield agreed(report) | {"echoed": sum(sizes)}
        if "- Peer has closed the GnuTLS connection" not in reports[-1] + program.text():
            raise ConnectionError(f"no close_notify came: {reports[-1][-300:]}")


if __name__ == "__main__":
    run(connect_all)
