#!/usr/bin/env bash
# Builds the example firmware, measures it, and runs it under qemu against a live broker.
#
#   tests/firmware.sh          all of it
#   tests/firmware.sh build    builds and measures only
#
# Uses rustup's target where it is installed; else Debian's rustc-web and its library sources, driven by rustup's cargo.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=thumbv7em-none-eabihf
out=$PWD/target/firmware
(
    # Where .cargo/config.toml has the flags that keep it small.
    cd tests/firmware
    build=(cargo build --quiet --release --target "$target" --target-dir "$out" --features tls)
    export DEFMT_LOG=info
    if ! rustup target list --installed 2>/dev/null | grep -q "$target"; then
        [ -x /usr/bin/rustc ] || {
            echo "firmware.sh: tests/setup.sh firmware installs a compiler for $target" >&2
            exit 1
        }
        # The linker of rustup's own toolchain: Debian's package brings none for firmware.
        linker=$(rustc --print sysroot)/lib/rustlib/x86_64-unknown-linux-gnu/bin/rust-lld
        export CARGO_TARGET_THUMBV7EM_NONE_EABIHF_LINKER=$linker
        export RUSTC=/usr/bin/rustc RUSTDOC=/usr/bin/rustdoc RUSTC_BOOTSTRAP=1
        build+=(-Zbuild-std=core)
    fi
    "${build[@]}"
)
export SKERRY_FIRMWARE=$out/$target/release

# size_of NAME BYTES: what goes to flash, which may not be more than that, and what is RAM before the stack.
size_of() {
    size -A "$SKERRY_FIRMWARE/$1" | awk -v name="$1" -v most="$2" '
        $1 == ".vector_table" { vectors = $2 }
        $1 ~ /^\.(text|rodata)$/ { text += $2 }
        $1 ~ /^\.(data|bss|uninit)$/ { ram += $2 }
        END {
            printf "%s: %d bytes of text, %d of vectors, %d of static RAM\n", name, text, vectors, ram
            if (text > most) { printf "%s: more text than %d bytes\n", name, most; exit 1 }
        }'
}
# A little more than they have: who adds to them sees it here.
size_of producer 24576
size_of producer-tls 89088
[ "${1:-}" != build ] || exit 0

cargo build --quiet --manifest-path tests/firmware/Cargo.toml --package firmware-log --target-dir "$out"
export SKERRY_FIRMWARE_LOG=$out/debug/firmware-log
cargo test --quiet --package skerry-tests --test firmware -- --ignored --nocapture --test-threads=1
