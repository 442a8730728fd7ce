"""tlslite-ng as a client. Rows on standard input; see README.md.

It is Python throughout: a row asks for little data. It checks no chains.
"""

import socket

from tlslite.api import HandshakeSettings, TLSConnection, X509CertChain, parsePEMKey
from tlslite.constants import CipherSuite

from rows import echo, run

VERSIONS = {"1.2": (3, 3), "1.3": (3, 4)}
CIPHERS = {"AES_128_GCM": "aes128gcm", "AES_256_GCM": "aes256gcm", "CHACHA20_POLY1305": "chacha20-poly1305"}


def settings_of(row):
    settings = HandshakeSettings()
    settings.minVersion = settings.maxVersion = VERSIONS[row["version"]]
    if row["version"] == "1.3":
        settings.versions = [(3, 4)]
    groups = row["group"].split(":") if row["group"] else ["x25519", "secp256r1", "secp384r1"]
    settings.eccCurves, settings.keyShares, settings.dhGroups = groups, groups[:1], []
    # Else it compresses certificates that nobody asked it to.
    settings.certificate_compression_send = settings.certificate_compression_receive = []
    if row["suite"]:
        settings.cipherNames = [theirs for ours, theirs in CIPHERS.items() if ours in row["suite"]]
    if row["record_size"]:
        settings.record_size_limit = int(row["record_size"])
    return settings


def credentials_of(row):
    if not row["cert"]:
        return {}
    chain = X509CertChain()
    with open(row["cert"]) as pem:
        chain.parsePemList(pem.read())
    with open(row["key"]) as pem:
        return {"certChain": chain, "privateKey": parsePEMKey(pem.read(), private=True)}


def connect_all(row):
    settings, session = settings_of(row), None
    for sizes in row.connections:
        with socket.create_connection(row.address, 30) as tcp:
            tls = TLSConnection(tcp)
            tls.ignoreAbruptClose = False
            tls.closeSocket = False
            name = None if row["name"][0].isdigit() else row["name"]
            tls.handshakeClientCert(settings=settings, session=session, serverName=name, **credentials_of(row))
            version = {pair: name for name, pair in VERSIONS.items()}[tls.version]
            echoed = echo(sizes, tls.write, lambda count: tls.read(count, 1))
            # Sends close_notify and waits for the peer's; without one it raises.
            tls.close()
            session = tls.session
            yield {
                "version": version,
                "suite": CipherSuite.ietfNames[session.cipherSuite],
                "resumed": "yes" if tls.resumed else "no",
                "echoed": echoed,
                "close": "clean",
            }


if __name__ == "__main__":
    run(connect_all)
