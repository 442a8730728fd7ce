#!/usr/bin/env bash
# Installs what this machine lacks for building and testing Skerry, or names exactly what to do where it cannot.
#
#   tests/setup.sh run      to build and run the broker: Rust, a C compiler, cmake and libclang
#   tests/setup.sh check    run, and rustfmt, clippy, what the firmware check needs
#   tests/setup.sh test     run, and every client, TLS peer and scanner of the interop suite with its language
#   tests/setup.sh firmware what the example firmware needs: its compiler, and an emulator
#   tests/setup.sh arm      run, compilers for ARM Linux and for firmware, and qemu to run what they made
#   tests/setup.sh dist     arm, and what makes and checks Debian packages
#   tests/setup.sh fuzz     run, and cargo-fuzz
#   tests/setup.sh guard    run, and valgrind with gungraun's runner
#
# For Debian and Ubuntu. Packages are installed when this runs as root or sudo asks for no password; otherwise the command is
# printed. It may be run again at any time: what is there is left alone.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

RUST_MIN=1.88
CARGO_FUZZ=0.13.1
# As in bench/guard/Cargo.toml.
GUNGRAUN=0.20.0

missing=()
say() { printf '%s\n' "$*" >&2; }
# lack WHAT: says it at the end, once.
lack() {
    local one
    for one in "${missing[@]}"; do [ "$one" != "$*" ] || return 0; done
    missing+=("$*")
}
# at_least HAVE WANTED: compares versions.
at_least() { [ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -1)" = "$2" ]; }

# debian PACKAGE…: has them installed.
debian() {
    local absent=() one
    for one in "$@"; do
        dpkg-query --show --showformat '${Status}' "$one" 2>/dev/null | grep -q 'ok installed' || absent+=("$one")
    done
    [ ${#absent[@]} -gt 0 ] || return 0
    local install=(apt-get install --yes --no-install-recommends --no-remove "${absent[@]}") as=()
    if [ "$(id -u)" -ne 0 ]; then
        if ! sudo -n true 2>/dev/null; then
            lack "sudo ${install[*]}"
            return 0
        fi
        as=(sudo -n env)
    fi
    say "setup: installing ${absent[*]}"
    if ! command -v apt-get >/dev/null; then
        lack "this system's packages of ${absent[*]} (Debian's names)"
    elif ! "${as[@]}" apt-get update -qq >/dev/null || ! DEBIAN_FRONTEND=noninteractive "${as[@]}" "${install[@]}" >/dev/null; then
        lack "sudo ${install[*]}    (it failed just now)"
    fi
}

rust() {
    local version
    if ! command -v cargo >/dev/null || ! version=$(rustc --version 2>/dev/null | cut -d' ' -f2); then
        lack "Rust $RUST_MIN or newer, by rustup (https://rustup.rs)"
    elif ! at_least "$version" "$RUST_MIN"; then
        lack "Rust $RUST_MIN or newer (this is $version): rustup update stable"
    fi
}

run() {
    rust
    command -v cc >/dev/null || debian gcc libc6-dev
    # mbedtls: built by cmake, its headers read by libclang.
    command -v cmake >/dev/null || debian cmake
    command -v make >/dev/null || debian make
    [ -n "${LIBCLANG_PATH:-}" ] || libclang
}

# libclang, and the compiler's own headers of the same version.
libclang() {
    local lib version
    for lib in /usr/lib/llvm-*/lib/libclang*.so*; do
        ! compgen -G "${lib%/libclang*}/clang/*/include/limits.h" >/dev/null || return 0
    done
    version=$(apt-cache depends libclang1 2>/dev/null | sed -n 's/^ *Depends: libclang1[a-z0-9]*-\([0-9]*\)$/\1/p') || version=
    if [ -n "$version" ]; then
        debian "libclang1-$version" "libclang-common-$version-dev"
    else
        debian libclang-dev
    fi
}

check() {
    run
    if command -v cargo >/dev/null; then
        cargo fmt --version >/dev/null 2>&1 || lack "rustup component add rustfmt"
        cargo clippy --version >/dev/null 2>&1 || lack "rustup component add clippy"
    fi
    thumb
}

# The firmware target: rustup's own where it is installed, else Debian's compiler with its library sources.
thumb() {
    if ! rustup target list --installed 2>/dev/null | grep -q thumbv7em-none-eabihf; then
        debian rustc-web rust-web-src
    fi
}

firmware() {
    thumb
    debian binutils
    command -v qemu-system-arm >/dev/null || debian qemu-system-arm
}

# Where rustup has the three targets it needs none of Debian's compiler, but the linkers and the C libraries all the same.
arm() {
    run
    thumb
    local target targets
    targets=$(rustup target list --installed 2>/dev/null) || targets=
    for target in thumbv6m-none-eabi riscv32imac-unknown-none-elf aarch64-unknown-linux-gnu armv7-unknown-linux-gnueabihf; do
        grep -qx "$target" <<<"$targets" || debian rustc-web rust-web-src
    done
    debian gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc-arm-linux-gnueabihf libc6-dev-armhf-cross
    command -v qemu-aarch64-static >/dev/null && command -v qemu-arm-static >/dev/null || debian qemu-user-static
    debian kcat openssl binutils
    command -v python3 >/dev/null || debian python3
}

dist() {
    arm
    debian dpkg-dev iproute2
    command -v systemd-analyze >/dev/null || debian systemd
}

fuzz() {
    run
    command -v c++ >/dev/null || debian g++
    if ! cargo fuzz --version >/dev/null 2>&1; then
        say "setup: installing cargo-fuzz $CARGO_FUZZ"
        cargo install --quiet --locked "cargo-fuzz@$CARGO_FUZZ" || lack "cargo install --locked cargo-fuzz@$CARGO_FUZZ"
    fi
}

guard() {
    run
    # Its counts need the symbols of the C library on some architectures.
    command -v valgrind >/dev/null || debian valgrind libc6-dbg
    if ! gungraun-runner --version 2>/dev/null | grep -qF "$GUNGRAUN"; then
        say "setup: installing gungraun-runner $GUNGRAUN"
        cargo install --quiet --locked "gungraun-runner@$GUNGRAUN" || lack "cargo install --locked gungraun-runner@$GUNGRAUN"
    fi
}

clients() {
    debian make g++ pkg-config kcat libssl-dev zlib1g-dev libzstd-dev
    python3 -c 'import venv, ensurepip' 2>/dev/null || debian python3 python3-venv
    command -v node >/dev/null || debian nodejs
    command -v npm >/dev/null || debian npm
    command -v mvn >/dev/null || debian maven
    command -v javac >/dev/null || debian default-jdk-headless
    # From 1.21 on, go itself takes the newer toolchain that a module asks for.
    local go
    if ! go=$(go env GOVERSION 2>/dev/null) || ! at_least "${go#go}" 1.21; then
        lack "Go 1.26 or newer (https://go.dev/dl): franz-go needs it"
    fi
}

# TLS peers that are no Kafka clients, and scanners.
peers() {
    debian openssl gnutls-bin sslscan nmap testssl.sh
    local version
    for version in 17 25; do
        grep -qs "^JAVA_VERSION=\"$version[.\"]" /usr/lib/jvm/*/release && continue
        # Debian has one of them; the other comes from Adoptium.
        if apt-cache show "openjdk-$version-jre-headless" >/dev/null 2>&1; then
            debian "openjdk-$version-jre-headless"
        else
            lack "Java $version under /usr/lib/jvm (https://adoptium.net/installation/linux)"
        fi
    done
}

# What looks at the page of the benchmarks.
browser() {
    command -v chromium >/dev/null || debian chromium fonts-dejavu-core
}

# One group's tools, and at the end whatever could not be had.
for group in "${@:-run}"; do
    case $group in
    run | check | firmware | arm | dist | fuzz | guard) "$group" ;;
    test)
        run
        clients
        peers
        browser
        ;;
    *)
        say "setup.sh: no group named $group (run, check, firmware, arm, dist, test, fuzz, guard)"
        exit 2
        ;;
    esac
done
if [ ${#missing[@]} -gt 0 ]; then
    say "setup: this machine still lacks:"
    printf '  %s\n' "${missing[@]}" >&2
    exit 1
fi
# The packages of each language, now that its tools are there.
case " $* " in *" test "*) tests/interop/build ;; esac
