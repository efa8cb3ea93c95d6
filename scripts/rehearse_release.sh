#!/usr/bin/env bash
# Rehearses a release: makes all that users install, and installs each in an empty Debian without Rust,
# compiler and network, where the first commands of the READMEs run.
#
#   scripts/rehearse_release.sh FOLDER [ARCHITECTURE]
#   scripts/rehearse_release.sh --install FOLDER [ARCHITECTURE]
#
# Makes the archive, the Debian package and the wheel in FOLDER, for ARCHITECTURE, x86_64 or aarch64; the
# default is this machine's, for which it also makes the packages of all crates, and builds each from its
# package, without a registry once the dependencies are in Cargo's cache. --install takes what is in FOLDER.
# Exit code 3: something could not run, and the last lines say why.
#
# Needs what build_release.sh and build_wheel.sh need, and for the installations root, debootstrap
# (apt-get install debootstrap), and the mirrors that apt and pip use on this machine. Another architecture
# runs under QEMU (apt-get install qemu-user-static binfmt-support).
set -euo pipefail
install_only=
if [ "${1:-}" = --install ]; then
    install_only=1
    shift
fi
if [ $# -lt 1 ] || [ "$1" = --help ] || [ "$1" = -h ]; then
    sed -n '2,16s/^# \{0,1\}//p' "$0"
    exit 2
fi
machine=${2:-$(uname -m)}
case $machine in
x86_64) debian=amd64 ;;
aarch64) debian=arm64 ;;
*)
    echo "$machine: there are releases for x86_64 and aarch64" >&2
    exit 2
    ;;
esac
mkdir -p "$1"
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."

# What could not run, and why.
left_out=()
step() { echo "== $*"; }

crates=$(realpath -m "${CARGO_TARGET_DIR:-target}/rehearsal")
if [ -z "$install_only" ]; then
    step "the wheel, the archive and the Debian package for $machine"
    rm -f "$folder"/pytapeloop-*_"$machine".whl "$folder"/tapeloop-*-"$machine"-linux.tar.gz \
        "$folder"/tapeloop_*_"$debian".deb
    scripts/build_release.sh "$folder" "$machine"
    scripts/build_wheel.sh "$folder" "$machine"
    if [ "$machine" = "$(uname -m)" ]; then
        step "the packages of the crates, each built from its package"
        # One folder for all, so that each dependency is compiled once.
        NVCC=none CARGO_TARGET_DIR=$crates cargo package --quiet --workspace --exclude tapeloop-python \
            --exclude tapeloop-test-support --exclude tapeloop-tests --offline --locked
    fi
fi
wheel=$(echo "$folder"/pytapeloop-*_"$machine".whl)
archive=$(echo "$folder"/tapeloop-*-"$machine"-linux.tar.gz)
package=$(echo "$folder"/tapeloop_*_"$debian".deb)
for file in "$wheel" "$archive" "$package"; do
    [ -e "$file" ] || {
        echo "$file: missing, or there are several; run scripts/rehearse_release.sh without --install, on a machine with dpkg-deb" >&2
        exit 1
    }
done

work=$(mktemp -d)
trap 'rm -rf --one-file-system "$work"' EXIT

# The release of Debian or Ubuntu that this machine runs, and where apt takes it from.
suite=$(. /etc/os-release 2> /dev/null && echo "${VERSION_CODENAME:-}")
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' "Codename: $suite" \
    2> /dev/null | head -n 1) || true

# Why no container can be made; nothing if it can.
obstacle() {
    if [ "$(id -u)" != 0 ]; then
        echo "needs root"
    elif ! command -v debootstrap > /dev/null; then
        echo "debootstrap is missing (apt-get install debootstrap)"
    elif [ -z "$suite" ] || [ -z "$mirror" ]; then
        echo "apt has no mirror for this system's release (/etc/apt, /etc/os-release)"
    elif ! unshare --mount --net --pid --fork true 2> /dev/null; then
        echo "this system lets root make no namespaces (unshare)"
    elif [ "$machine" != "$(uname -m)" ] && ! arch-test "$debian" > /dev/null 2>&1; then
        echo "this machine runs no programs for $debian (apt-get install qemu-user-static binfmt-support arch-test)"
    fi
}

# Makes an empty system with the given packages. Fails without a network.
system() {
    mkdir -p "$work/debs"
    debootstrap --variant=minbase --arch="$debian" --cache-dir="$work/debs" ${2:+--include="$2"} \
        "$suite" "$work/$1" "$mirror" > "$work/debootstrap.log" 2>&1 && return
    left_out+=("$3: debootstrap could not install $suite: $(tail -n 1 "$work/debootstrap.log")")
    return 1
}

# Runs commands in a copy of a system, without network, in its folder /root, which has these files.
inside() {
    local system=$1 commands=$2
    shift 2
    rm -rf --one-file-system "$work/copy"
    cp -a "$work/$system" "$work/copy"
    for file in "$@"; do
        # FOLDER=FILE
        mkdir -p "$work/copy/root/${file%%=*}"
        cp -r "${file#*=}" "$work/copy/root/${file%%=*}/"
    done
    unshare --mount --net --pid --fork env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive PIP_NO_INDEX=1 PIP_FIND_LINKS=/root/packages PIP_ROOT_USER_ACTION=ignore \
        chroot "$work/copy" bash -euo pipefail -c "mount -t proc proc /proc
            mount -t devpts devpts /dev/pts
            cd /root
            $commands"
}

# The first block of a language behind a heading of a Markdown file, without what needs Rust.
block() {
    awk -v heading="$2" -v fence="\`\`\`$3" '
        $0 == heading { behind = 1 }
        behind && $0 == fence { open = 1; next }
        open && /^```/ { exit }
        open && !/^scripts\// { print; lines++ }
        END { if (!lines) exit 1 }' "$1" && return
    echo "$1: no block of $3 behind \"$2\"" >&2
    exit 1
}

why=$(obstacle)
if [ -n "$why" ]; then
    left_out+=("the installations: $why")
elif system empty "" "the archive, the Debian package and the program of the crates"; then
    step "the archive"
    commands=$(block README.md "## Without Rust" sh)
    inside empty "$commands" release="$archive"

    step "the Debian package"
    inside empty 'apt-get install -qq -o Dpkg::Use-Pty=0 ./release/tapeloop_*.deb
        tapeloop /usr/share/doc/tapeloop/examples/1ubi.pdb
        tapeloop run /usr/share/doc/tapeloop/examples -o out/mine
        ls out/mine/residues/part-00000.parquet /usr/share/man/man1/tapeloop.1.gz
        apt-get purge -qq -o Dpkg::Use-Pty=0 tapeloop
        [ ! -e /usr/bin/tapeloop ]' release="$package"

    if [ -z "$install_only" ] && [ "$machine" = "$(uname -m)" ]; then
        step "the program that was built from the packages of the crates"
        inside empty './program/tapeloop samples/1ubi.pdb' program="$crates/debug/tapeloop" \
            samples=samples/1ubi.pdb
    fi
fi

if [ -z "$why" ] && system python python3-venv "the wheel"; then
    step "the wheel"
    version=$(basename "$(readlink "$work/python/usr/bin/python3")")
    version=${version#python}
    platforms=()
    for platform in manylinux_2_28 manylinux_2_17 manylinux2014; do
        platforms+=(--platform "${platform}_$machine")
    done
    if python3 -m pip download --quiet --dest "$work/packages" --only-binary :all: --implementation cp \
        --python-version "$version" "${platforms[@]}" numpy pandas polars pyarrow 2> "$work/pip.log"; then
        # A folder, a list and a config, which the lines of the README name.
        commands='python3 -m venv environment
            . environment/bin/activate
            echo structures/1ubi.pdb > ids.txt
            echo "input = \"structures\"" > job.toml'
        commands+=$'\n'$(block python/README.md "# pytapeloop: tapeloop for Python" sh)
        commands+=$'\npip install --quiet numpy pandas polars pyarrow\npython lines/lines.py\nls out/residues'
        block python/README.md "## Another project is called tapeloop" python > "$work/lines.py"
        line=$(grep -o 'pytapeloop\.features("structures/")\.to_pandas()' README.md)
        echo "print($line)" >> "$work/lines.py"
        inside python "$commands" wheels="$wheel" samples=samples/1ubi.pdb \
            structures=samples/1ubi.pdb structures=samples/1a8o.cif.gz packages="$work/packages/." \
            lines="$work/lines.py"
    else
        left_out+=("the wheel: pip could not download NumPy, pandas, Polars and pyarrow: $(tail -n 1 "$work/pip.log")")
    fi
fi

if [ ${#left_out[@]} -gt 0 ]; then
    echo "== not run"
    printf '%s\n' "${left_out[@]}"
    exit 3
fi
echo "What a release for $machine has was installed, and runs."
