#!/usr/bin/env bash
# Builds core, with and without its optional features, and the TLS engine without providers for a Cortex-M4 without an operating
# system: no_std, no 64-bit atomics. Uses rustup's target where it is installed; else Debian's rustc-web and its library sources,
# driven by rustup's cargo.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=thumbv7em-none-eabihf
build=(cargo build --quiet --target "$target" --target-dir target/arm)
if ! rustup target list --installed 2>/dev/null | grep -q "$target"; then
    [ -x /usr/bin/rustc ] || {
        echo "thumb.sh: tests/setup.sh check installs a compiler for $target" >&2
        exit 1
    }
    # The linker of rustup's own toolchain: Debian's package brings none for firmware.
    linker=$(rustc --print sysroot)/lib/rustlib/x86_64-unknown-linux-gnu/bin/rust-lld
    export CARGO_TARGET_THUMBV7EM_NONE_EABIHF_LINKER=$linker
    export RUSTC=/usr/bin/rustc RUSTDOC=/usr/bin/rustdoc RUSTC_BOOTSTRAP=1
    build+=(-Zbuild-std=core,alloc)
fi
"${build[@]}" --package skerry-core
"${build[@]}" --package skerry-core --features bytes,defmt
"${build[@]}" --package skerry-tls --no-default-features
echo "core and tls build for $target"
