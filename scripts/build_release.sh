#!/bin/sh
# Makes a release for Linux: an archive, a Debian package, and their SHA-256.
#
#   scripts/build_release.sh FOLDER [ARCHITECTURE [PROGRAM]]
#
# ARCHITECTURE is x86_64 or aarch64; the default is this machine's. The script builds the
# program with the profile dist, or packs PROGRAM, which was built so elsewhere. The program
# starts on every distribution with glibc 2.17 or newer (2012), as Zig links it. It is not
# static: it opens the CUDA driver when it starts. It contains the kernels as machine code.
#
# Needs Rust with the standard library of the architecture (rustup target add
# aarch64-unknown-linux-gnu), g++, and Python with venv and pip, which install Zig,
# cargo-zigbuild and nvcc into target/release-tools; NVCC names another nvcc. To run a
# program for another architecture, it needs QEMU and that architecture's C library
# (apt-get install qemu-user-static libc6-arm64-cross).
set -eu
if [ $# -lt 1 ] || [ "$1" = --help ] || [ "$1" = -h ]; then
    sed -n '2,15s/^# \{0,1\}//p' "$0"
    exit 2
fi
mkdir -p "$1"
folder=$(cd "$1" && pwd)
machine=${2:-$(uname -m)}
program=${3:-}
[ -z "$program" ] || program=$(realpath "$program")
cd "$(dirname "$0")/.."

# The oldest glibc that Rust supports.
glibc=2.17
case $machine in
x86_64) debian=amd64 ;;
aarch64) debian=arm64 ;;
*)
    echo "$machine: there are releases for x86_64 and aarch64" >&2
    exit 2
    ;;
esac
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
name=tapeloop-$version-$machine-linux

if [ -z "$program" ]; then
    tools=${CARGO_TARGET_DIR:-target}/release-tools
    if ! command -v cargo-zigbuild > /dev/null; then
        [ -x "$tools/zig/bin/cargo-zigbuild" ] || {
            python3 -m venv "$tools/zig"
            "$tools/zig/bin/pip" install --quiet cargo-zigbuild ziglang
        }
        PATH=$(realpath "$tools/zig/bin"):$PATH
        export PATH
    fi
    # For all GPUs.
    unset TAPELOOP_CUDA_TARGETS
    if [ -z "${NVCC:-}" ]; then
        NVCC=$tools/cuda/nvidia/cu13/bin/nvcc
        [ -x "$NVCC" ] || python3 -m pip install --quiet --target "$tools/cuda" \
            nvidia-cuda-nvcc==13.0.* nvidia-cuda-crt==13.0.* nvidia-cuda-runtime==13.0.* \
            nvidia-cuda-cccl==13.0.* nvidia-nvvm==13.0.*
        NVCC=$(realpath "$NVCC")
        export NVCC
    fi
    target=$machine-unknown-linux-gnu
    TAPELOOP_COMMIT=$(git describe --always --dirty 2> /dev/null || true)
    [ -z "$TAPELOOP_COMMIT" ] || export TAPELOOP_COMMIT
    cargo zigbuild --locked --profile dist --bin tapeloop --target "$target.$glibc"
    program=${CARGO_TARGET_DIR:-target}/$target/dist/tapeloop
fi
needed=$(scripts/check_glibc.sh "$program" "$glibc")

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
root=$stage/$name
mkdir -p "$root/man" "$root/completions"
cp "$program" "$root/tapeloop"
chmod 755 "$root/tapeloop"
emulator=
if [ "$machine" != "$(uname -m)" ]; then
    emulator=qemu-$machine-static
    # Where Debian has the C library of another architecture.
    export QEMU_LD_PREFIX="${QEMU_LD_PREFIX:-/usr/$machine-linux-gnu}"
fi
case $($emulator "$root/tapeloop" doctor --backend cpu) in
*"compiled in by nvcc"*) ;;
*)
    echo "$program: has no kernels: build it with nvcc" >&2
    exit 1
    ;;
esac
$emulator "$root/tapeloop" man "$root/man"
for shell in bash zsh fish; do
    $emulator "$root/tapeloop" completions $shell > "$root/completions/tapeloop.$shell"
done
cp README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT samples/1ubi.pdb "$root"
mkdir "$root/docs"
cp -R docs/CONFIG.md docs/config "$root/docs/"
chmod -R u=rwX,go=rX "$root"

# The same program gives the same bytes.
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
tar -C "$stage" --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner \
    -cf - "$name" | gzip -9n > "$folder/$name.tar.gz"
made=$name.tar.gz

if command -v dpkg-deb > /dev/null; then
    package=$stage/package
    share=$package/usr/share
    mkdir -p "$package/DEBIAN" "$package/usr/bin" "$share/man/man1" \
        "$share/doc/tapeloop/examples" "$share/bash-completion/completions" \
        "$share/zsh/vendor-completions" "$share/fish/vendor_completions.d"
    cp "$root/tapeloop" "$package/usr/bin/"
    for page in "$root"/man/*.1; do
        gzip -9n < "$page" > "$share/man/man1/$(basename "$page").gz"
    done
    cp "$root/completions/tapeloop.bash" "$share/bash-completion/completions/tapeloop"
    cp "$root/completions/tapeloop.zsh" "$share/zsh/vendor-completions/_tapeloop"
    cp "$root/completions/tapeloop.fish" "$share/fish/vendor_completions.d/"
    cp README.md "$share/doc/tapeloop/"
    cp -R "$root/docs" "$share/doc/tapeloop/"
    cp samples/1ubi.pdb "$share/doc/tapeloop/examples/"
    cat LICENSE-MIT LICENSE-APACHE > "$share/doc/tapeloop/copyright"
    cat > "$package/DEBIAN/control" << CONTROL
Package: tapeloop
Version: $version
Architecture: $debian
Maintainer: The tapeloop developers <tapeloop@localhost>
Installed-Size: $(du -sk "$package/usr" | cut -f 1)
Section: science
Priority: optional
Depends: libc6 (>= $needed)
Suggests: nvidia-driver
Description: per-residue features of protein structures, on a GPU or the CPU
 Streams PDB and mmCIF files into tables of contact numbers, solvent-accessible
 areas, secondary structure, torsions and more.
CONTROL
    chmod -R u=rwX,go=rX "$package"
    find "$package" -exec touch -h -d "@$epoch" {} +
    deb=tapeloop_${version}_$debian.deb
    SOURCE_DATE_EPOCH=$epoch dpkg-deb --root-owner-group -Zxz --build "$package" \
        "$folder/$deb" > /dev/null
    made="$made $deb"
fi
(cd "$folder" && sha256sum $made > "SHA256SUMS-$machine")
for file in $made; do
    echo "$folder/$file: $(du -h "$folder/$file" | cut -f 1), needs glibc $needed or newer"
done
