#!/usr/bin/env bash
# Everything but firmware that must hold on other machines than this one:
#
#   core and the TLS engine without an operating system (tests/bare.sh)
#   for 64 and 32 bits of ARM Linux: unit tests of core, net and tls with both providers of primitives, and those of every primitive,
#     in programs for that processor under qemu-user; then the broker, with kcat over TLS as its client
#   net and the broker once more with pages of 64 KiB, and buffers that 32 bits cannot address
#   the packages of both, installed and started
#   core's tests under Miri, where the toolchain has it
#
# Under qemu-user there is neither io_uring nor epoll_pwait2, so the ways around them are what runs here; the ring is tested on the
# host. Installs nothing: tests/setup.sh arm does.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Nobody debugs these programs, and without what a debugger reads they take a third of the room.
export CARGO_PROFILE_DEV_DEBUG=0
units=(--package skerry-core --package skerry-net --package skerry-tls)

scratch=$(mktemp --directory)
trap 'rm -rf "$scratch"' EXIT

# kcat_over_tls PROGRAM…: a real kcat with records of several codecs, in a group, then with a certificate of its own.
kcat_over_tls() {
    local wrapper=$scratch/skerry
    printf '#!/bin/sh\nexec %s "$@"\n' "$*" >"$wrapper"
    chmod +x "$wrapper"
    SKERRY_BIN=$wrapper cargo test --quiet --package skerry-tests --test interop -- --ignored --exact tls_kcat
}

# one_file TARGET: the broker is one file that asks for no other.
one_file() {
    if readelf --dynamic "target/arm/$1/debug/skerry" | grep NEEDED; then
        echo "arm.sh: the broker for $1 is not static" >&2
        exit 1
    fi
}

# beyond_addresses QEMU: buffers for which 32 bits have no addresses are refused by name, as a setting like any other.
beyond_addresses() {
    local said
    if said=$("$1" target/arm/armv7-unknown-linux-gnueabihf/debug/skerry run --override "log.dirs=$scratch/none" \
        --override socket.request.max.bytes=2147483647 --override skerry.limits.large.buffers=1024 2>&1) ||
        ! grep -q 'skerry.limits.large.buffers.*1024: allowed: at most 0 of' <<<"$said"; then
        printf 'arm.sh: pools beyond 32 bits are not refused:\n%s\n' "$said" >&2
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
beyond_addresses qemu-arm-static
PROFILE=dev broker/packaging/dist arm64 armhf
tests/packages.sh target/dist-dev

if cargo +nightly miri --version >/dev/null 2>&1; then
    cargo +nightly miri test --quiet --package skerry-core --lib --target-dir target/miri
else
    echo "no Miri here (rustup +nightly component add miri rust-src): core's tests under it are left out"
fi
