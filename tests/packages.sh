#!/usr/bin/env bash
# tests/packages.sh [FOLDER]: target/dist when none is named.
#
# Installs each Debian package of the folder in a copy of this machine's file system that is thrown away, starts what its unit starts,
# under qemu-user where it is for ARM, has a record go in and out and survive a restart, then upgrades, removes and purges it. The
# tarballs' contents are listed, all held to their checksums, the unit to systemd's own check and to a bound on its exposure.
#
# Needs root for the copy (an overlay, a name space of mounts and one of networks); says so and leaves that out otherwise. Systemd
# itself is not started: nothing here shows that its sandbox leaves the broker what it needs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
dist=$(realpath "${1:-target/dist}")

(cd "$dist" && sha256sum --quiet --check SHA256SUMS)
for tarball in "$dist"/skerry-*.tar.gz; do
    listing=$(tar --list --file "$tarball" | sed 's|^[^/]*/||' | sort | xargs)
    [ "$listing" = "LICENSE-APACHE LICENSE-MIT README.md THIRD-PARTY.md server.properties skerry skerry.service" ] || {
        echo "packages.sh: $tarball holds $listing" >&2
        exit 1
    }
done

if [ "$(id -u)" -ne 0 ] || ! unshare --mount --net true 2>/dev/null; then
    echo "packages.sh: not root: the packages were neither installed nor started"
    exit 0
fi

# Runs as root of the copy, alone in its network.
inside() {
    set -euo pipefail
    local package=$1 architecture program process
    ip link set lo up
    architecture=$(dpkg-deb --field "$package" Architecture)
    case $architecture in
    arm64) program=(qemu-aarch64-static) ;;
    armhf) program=(qemu-arm-static) ;;
    *) program=() ;;
    esac
    # No dependency is asked for, so that another architecture's package installs without that architecture's libraries.
    dpkg --add-architecture "$architecture"
    dpkg --install "$package" >/dev/null

    if command -v systemd-analyze >/dev/null; then
        systemd-analyze verify --man=no /usr/lib/systemd/system/skerry.service
        systemd-analyze security --offline=true --threshold=15 --no-pager skerry.service | tail -1
    fi
    [ "$(systemctl is-enabled skerry.service)" = enabled ]

    # What StateDirectory, UMask, LimitNOFILE and MemoryMax come to, as near as it gets without systemd.
    mkdir -p /var/lib/skerry
    local start
    start=$(sed -n 's/^ExecStart=//p' /usr/lib/systemd/system/skerry.service)
    run() {
        # shellcheck disable=SC2086 # a command with its arguments
        "${program[@]}" $start 2>>/tmp/skerry.log &
        process=$!
        for _ in $(seq 600); do
            ! "${program[@]}" /usr/bin/skerry topics list >/dev/null 2>&1 || return 0
            kill -0 "$process" 2>/dev/null || break
            sleep 0.1
        done
        cat /tmp/skerry.log >&2
        return 1
    }
    end() {
        kill -TERM "$process"
        wait "$process"
    }
    run
    echo hello | "${program[@]}" /usr/bin/skerry produce demo
    end
    run
    # By name, which a static program has to find by itself.
    [ "$("${program[@]}" /usr/bin/skerry consume demo --bootstrap-server localhost:9092 --from-beginning --max-messages 1)" = hello ]
    end

    # An upgrade leaves the settings as they were made, a removal the settings, a purge the data.
    echo num.partitions=2 >>/etc/skerry/server.properties
    dpkg --force-confdef --force-confold --install "$package" >/dev/null
    grep -q '^num.partitions=2' /etc/skerry/server.properties
    dpkg --remove skerry >/dev/null
    [ -e /etc/skerry/server.properties ] && [ ! -e /usr/bin/skerry ]
    dpkg --purge skerry >/dev/null
    [ ! -e /etc/skerry/server.properties ] && [ -d /var/lib/skerry/demo-0 ]
    echo "$architecture: installed, started, upgraded, removed, purged"
}

for package in "$dist"/skerry_*.deb; do
    copy=$(mktemp --directory)
    unshare --mount --net --fork bash -euo pipefail -c "
        $(declare -f inside)
        mount -t tmpfs tmpfs '$copy'
        mkdir '$copy'/{above,work,root}
        mount -t overlay overlay -o lowerdir=/,upperdir='$copy'/above,workdir='$copy'/work '$copy'/root
        mount --rbind /proc '$copy'/root/proc
        mount --rbind /dev '$copy'/root/dev
        mount -t tmpfs tmpfs '$copy'/root/tmp
        cp '$package' '$copy'/root/tmp/skerry.deb
        export -f inside
        exec chroot '$copy'/root bash -c 'inside /tmp/skerry.deb'
    "
    rmdir "$copy"
done
