#!/usr/bin/env bash
# Makes algorithms.pem: for every algorithm that is taken in a chain a CA and a leaf that it signed by it, by OpenSSL.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
exec 3> algorithms.pem

# pair NAME HASH KEY-OPTIONS… [-- SIGNATURE-OPTIONS…]
pair() {
    local name=$1 hash=$2; shift 2
    local key=()
    while [ $# -gt 0 ] && [ "$1" != -- ]; do key+=("$1"); shift; done
    [ $# -eq 0 ] || shift
    openssl genpkey "${key[@]}" -out "$work/ca.key" 2> /dev/null
    openssl req -x509 -new -key "$work/ca.key" "-$hash" "$@" -subj "/CN=$name ca" -days 36500 -out "$work/ca.pem" \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign
    openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$work/leaf.key"
    openssl req -new -key "$work/leaf.key" -subj "/CN=$name" -out "$work/leaf.csr"
    openssl x509 -req -in "$work/leaf.csr" -CA "$work/ca.pem" -CAkey "$work/ca.key" "-$hash" "$@" -days 36500 -CAcreateserial \
        -extfile <(printf 'subjectAltName=DNS:leaf.example\nextendedKeyUsage=serverAuth,clientAuth\nkeyUsage=digitalSignature\n') \
        -out "$work/leaf.pem" 2> /dev/null
    cat "$work/ca.pem" "$work/leaf.pem" >&3
}

for hash in sha256 sha384 sha512; do
    for curve in P-256 P-384 P-521; do
        pair "ecdsa $curve $hash" "$hash" -algorithm EC -pkeyopt "ec_paramgen_curve:$curve"
    done
    pair "rsa 2048 $hash" "$hash" -algorithm RSA -pkeyopt rsa_keygen_bits:2048
    pair "rsa pss 2048 $hash" "$hash" -algorithm RSA -pkeyopt rsa_keygen_bits:2048 \
        -- -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:digest
done
pair "rsa 3072" sha256 -algorithm RSA -pkeyopt rsa_keygen_bits:3072
pair "rsa 4096" sha384 -algorithm RSA -pkeyopt rsa_keygen_bits:4096
pair "rsa 8192" sha256 -algorithm RSA -pkeyopt rsa_keygen_bits:8192
pair "rsa exponent 3" sha256 -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -pkeyopt rsa_keygen_pubexp:3
# Those that are not taken.
pair "refused rsa 1024" sha256 -algorithm RSA -pkeyopt rsa_keygen_bits:1024
pair "refused rsa sha1" sha1 -algorithm RSA -pkeyopt rsa_keygen_bits:2048
pair "refused rsa sha224" sha224 -algorithm RSA -pkeyopt rsa_keygen_bits:2048
pair "refused rsa pss sha1" sha1 -algorithm RSA -pkeyopt rsa_keygen_bits:2048 \
    -- -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:digest
pair "refused rsa pss salt" sha256 -algorithm RSA -pkeyopt rsa_keygen_bits:2048 \
    -- -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:20
pair "refused rsa pss mask" sha256 -algorithm RSA -pkeyopt rsa_keygen_bits:2048 \
    -- -sigopt rsa_padding_mode:pss -sigopt rsa_pss_saltlen:digest -sigopt rsa_mgf1_md:sha384
pair "refused ecdsa sha1" sha1 -algorithm EC -pkeyopt ec_paramgen_curve:P-256
pair "refused curve" sha256 -algorithm EC -pkeyopt ec_paramgen_curve:secp256k1
pair "refused explicit curve" sha256 -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -pkeyopt ec_param_enc:explicit
pair "refused P-224" sha256 -algorithm EC -pkeyopt ec_paramgen_curve:P-224
