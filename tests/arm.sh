#!/usr/bin/env bash
# Everything but firmware that must hold on other machines than this one:
#
#   core and the TLS engine without an operating system (tests/bare.sh)
#   for 64 and 32 bits of ARM Linux: unit tests of core, net and tls with both providers of primitives, and those of every primitive,
#     in programs for that processor under qemu-user; then the broker, with kcat over TLS as its client
#   both once more where it differs from most machines: pages of 64 KiB
#
# Under qemu-user there is neither io_uring nor epoll_pwait2, so the ways around them are what runs here; the ring is tested on the
# host. Installs nothing: tests/setup.sh arm does.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Nobody debugs these programs, and without what a debugger reads they take a third of the room.
export CARGO_PROFILE_DEV_DEBUG=0
units=(--package skerry-core --package skerry-net --package skerry-tls)

# kcat_over_tls PROGRAM…: a real kcat with records of several codecs, in a group, then with a certificate of its own.
kcat_over_tls() {
    local wrapper
    wrapper=$(mktemp)
    printf '#!/bin/sh\nexec %s "$@"\n' "$*" >"$wrapper"
    chmod +x "$wrapper"
    SKERRY_BIN=$wrapper cargo test --quiet --package skerry-tests --test interop -- --ignored --exact tls_kcat
    rm "$wrapper"
}

# one_file TARGET: the broker is one file that asks for no other.
one_file() {
    if readelf --dynamic "target/arm/$1/debug/skerry" | grep NEEDED; then
        echo "arm.sh: the broker for $1 is not static" >&2
        exit 1
    fi
}

tests/bare.sh
for target in aarch64-unknown-linux-gnu armv7-unknown-linux-gnueabihf; do
    qemu=qemu-${target%%-*}-static
    qemu=${qemu/armv7/arm}
    echo "== $target"
    tests/cross.sh "$target" test --quiet "${units[@]}" --lib
    tests/cross.sh "$target" test --quiet --package skerry-tls --test wycheproof --test primitives
    QEMU='-p 65536' tests/cross.sh "$target" test --quiet --package skerry-net --lib

    tests/cross.sh "$target" build --quiet --package skerry-broker --bin skerry
    one_file "$target"
    kcat_over_tls "$qemu" "$PWD/target/arm/$target/debug/skerry"
    kcat_over_tls "$qemu" -p 65536 "$PWD/target/arm/$target/debug/skerry"
    echo "the broker for $target serves kcat over TLS"
done
