#!/usr/bin/env bash
# core and the TLS engine without providers, linked for processors without an operating system, without std, alloc or an allocator
# (tests/bare). What each target is here for:
#
#   thumbv7em-none-eabihf         Cortex-M4F: no 64-bit atomics
#   thumbv6m-none-eabi            Cortex-M0+: no compare-and-swap, no unaligned access in hardware, no division
#   riscv32imac-unknown-none-elf  another architecture of 32 bits
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

for target in thumbv7em-none-eabihf thumbv6m-none-eabi riscv32imac-unknown-none-elf; do
    LIBRARIES=core tests/cross.sh "$target" build --quiet --manifest-path tests/bare/Cargo.toml
    echo "core and tls link for $target"
done
# With what core offers to firmware. Not on thumbv6m, where bytes asks for atomics by other means, which only a firmware can choose.
tests/cross.sh thumbv7em-none-eabihf build --quiet --package skerry-core --features bytes,defmt,embedded-io,embedded-nal
echo "core builds for thumbv7em-none-eabihf with all its features"
