#!/usr/bin/env bash
# Runs cargo for a machine of another kind: tests/cross.sh TARGET COMMAND ARGUMENTS…
#
#   tests/cross.sh aarch64-unknown-linux-gnu build --release --package skerry-broker
#   tests/cross.sh armv7-unknown-linux-gnueabihf test --package skerry-core
#   tests/cross.sh thumbv7em-none-eabihf build --package skerry-core
#
# Uses rustup's target where it is installed (rustup target add TARGET). Else Debian's rustc-web and its library sources, driven by
# rustup's cargo, which need no download but Debian's packages: tests/setup.sh arm installs them. Linux binaries are static, and what
# runs here runs under qemu-user. Everything lies under target/arm.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

target=$1 command=$2
shift 2
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target/arm}

# set_for NAME VALUE: cargo's setting of that name for this target.
set_for() {
    local name=${target^^}
    export "CARGO_TARGET_${name//-/_}_$1=$2"
}

libraries=core,alloc
case $target in
*-linux-*)
    libraries=std,panic_unwind,panic_abort
    # One file that needs nothing of the system that it is put on; FLAGS are the caller's own.
    set_for RUSTFLAGS "-Ctarget-feature=+crt-static ${FLAGS:-}"
    case $target in
    aarch64-*) gnu=aarch64-linux-gnu qemu=qemu-aarch64-static ;;
    armv7-*) gnu=arm-linux-gnueabihf qemu=qemu-arm-static ;;
    x86_64-*) gnu='' ;;
    *)
        echo "cross.sh: no Linux target $target here" >&2
        exit 2
        ;;
    esac
    if [ -n "$gnu" ]; then
        set_for LINKER "$gnu-gcc"
        set_for RUNNER "$qemu ${QEMU:-}"
    fi
    ;;
esac

arguments=("$command" --target "$target" "$@")
# A target without an alloc crate shows that nothing asks for one: LIBRARIES=core.
libraries=${LIBRARIES:-$libraries}
if [ "$target" != x86_64-unknown-linux-gnu ] && ! rustup target list --installed 2>/dev/null | grep -qx "$target"; then
    [ -x /usr/bin/rustc ] && [ -d "$(/usr/bin/rustc --print sysroot)/lib/rustlib/src" ] || {
        echo "cross.sh: 'rustup target add $target', or tests/setup.sh arm for Debian's compiler" >&2
        exit 1
    }
    case $target in
    *-none-*)
        # The linker of rustup's own toolchain: Debian's package brings none for firmware.
        host=$(rustc -vV | sed -n 's/^host: //p')
        set_for LINKER "$(rustc --print sysroot)/lib/rustlib/$host/bin/rust-lld"
        ;;
    esac
    export RUSTC=/usr/bin/rustc RUSTDOC=/usr/bin/rustdoc RUSTC_BOOTSTRAP=1
    arguments+=("-Zbuild-std=$libraries")
fi
# What follows "--" is the test program's.
exec cargo "${arguments[@]}"
