"""Python's own ssl module as a client. Rows on standard input; see README.md."""

import socket
import ssl

from rows import echo, run

OPENSSL_NAMES = {
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256": "ECDHE-ECDSA-AES128-GCM-SHA256",
    "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384": "ECDHE-ECDSA-AES256-GCM-SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-ECDSA-CHACHA20-POLY1305",
    "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256": "ECDHE-RSA-AES128-GCM-SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384": "ECDHE-RSA-AES256-GCM-SHA384",
    "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256": "ECDHE-RSA-CHACHA20-POLY1305",
}
IANA_NAMES = {theirs: iana for iana, theirs in OPENSSL_NAMES.items()}
VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}


def context_of(row):
    context = ssl.create_default_context(cafile=row["ca"])
    context.minimum_version = context.maximum_version = VERSIONS[row["version"]]
    if row["cert"]:
        context.load_cert_chain(row["cert"], row["key"])
    if row["suite"]:
        # Of TLS 1.3 nothing can be chosen.
        context.set_ciphers(OPENSSL_NAMES[row["suite"]])
    if row["group"]:
        context.set_ecdh_curve({"secp256r1": "prime256v1", "x25519": "X25519"}[row["group"]])
    return context


def connect_all(row):
    context, session = context_of(row), None
    for sizes in row.connections:
        with socket.create_connection(row.address, 30) as tcp:
            with context.wrap_socket(tcp, server_hostname=row["name"], session=session) as tls:
                suite, version = tls.cipher()[0], tls.version().removeprefix("TLSv")
                echoed = echo(sizes, tls.sendall, tls.recv)
                # TLS 1.3's tickets come after the handshake.
                session = tls.session
                resumed = tls.session_reused
                # Sends close_notify and waits for the peer's; without one it raises.
                tls.unwrap()
        yield {
            "version": version,
            "suite": IANA_NAMES.get(suite, suite),
            "resumed": "yes" if resumed else "no",
            "echoed": echoed,
            "close": "clean",
        }


if __name__ == "__main__":
    run(connect_all)
