#!/bin/sh
# Makes a release for Linux on the architecture of this machine: an archive, a
# Debian package, and their SHA-256.
#
#   scripts/build_release.sh FOLDER [PROGRAM]
#
# Builds the program with the profile dist, or packs PROGRAM, which was built
# elsewhere. With cargo-zigbuild the program starts on every distribution with
# glibc 2.17 or newer; without it, on those with the glibc of this machine. The
# program is not static: it opens the CUDA driver when it starts. The kernels are
# in it if nvcc is found (NVCC names it); otherwise NVRTC compiles them.
set -eu
if [ $# -lt 1 ]; then
    sed -n '2,12s/^# \{0,1\}//p' "$0"
    exit 2
fi
mkdir -p "$1"
folder=$(cd "$1" && pwd)
program=${2:-}
[ -z "$program" ] || program=$(realpath "$program")
cd "$(dirname "$0")/.."

machine=$(uname -m)
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
name=tapeloop-$version-$machine-linux
if [ -z "$program" ]; then
    target=$machine-unknown-linux-gnu
    if command -v cargo-zigbuild > /dev/null; then
        cargo zigbuild --locked --profile dist --bin tapeloop --target "$target.2.17"
    else
        echo "no cargo-zigbuild: the program needs the glibc of this machine" >&2
        cargo build --locked --profile dist --bin tapeloop --target "$target"
    fi
    program=${CARGO_TARGET_DIR:-target}/$target/dist/tapeloop
fi

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
root=$stage/$name
mkdir -p "$root/man" "$root/completions"
strip -o "$root/tapeloop" "$program"
chmod 755 "$root/tapeloop"
"$root/tapeloop" man "$root/man"
for shell in bash zsh fish; do
    "$root/tapeloop" completions $shell > "$root/completions/tapeloop.$shell"
done
cp README.md CHANGELOG.md LICENSE-APACHE LICENSE-MIT docs/CONFIG.md "$root"
glibc=$(objdump -T "$root/tapeloop" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
glibc=${glibc#GLIBC_}

# The same program gives the same bytes.
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
tar -C "$stage" --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner \
    -cf - "$name" | gzip -9n > "$folder/$name.tar.gz"
made=$name.tar.gz

if command -v dpkg-deb > /dev/null; then
    package=$stage/package
    share=$package/usr/share
    mkdir -p "$package/DEBIAN" "$package/usr/bin" "$share/man/man1" "$share/doc/tapeloop" \
        "$share/bash-completion/completions" "$share/zsh/vendor-completions" \
        "$share/fish/vendor_completions.d"
    cp "$root/tapeloop" "$package/usr/bin/"
    for page in "$root"/man/*.1; do
        gzip -9n < "$page" > "$share/man/man1/$(basename "$page").gz"
    done
    cp "$root/completions/tapeloop.bash" "$share/bash-completion/completions/tapeloop"
    cp "$root/completions/tapeloop.zsh" "$share/zsh/vendor-completions/_tapeloop"
    cp "$root/completions/tapeloop.fish" "$share/fish/vendor_completions.d/"
    cp README.md docs/CONFIG.md "$share/doc/tapeloop/"
    cat LICENSE-MIT LICENSE-APACHE > "$share/doc/tapeloop/copyright"
    cat > "$package/DEBIAN/control" <<CONTROL
Package: tapeloop
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: The tapeloop developers <tapeloop@localhost>
Section: science
Priority: optional
Depends: libc6 (>= $glibc), libgcc-s1
Suggests: nvidia-driver
Description: per-residue features of protein structures, on a GPU or the CPU
 Streams PDB and mmCIF files into tables of contact numbers, solvent-accessible
 areas, secondary structure, torsions and more.
CONTROL
    find "$package" -exec touch -h -d "@$epoch" {} +
    deb=tapeloop_${version}_$(dpkg --print-architecture).deb
    SOURCE_DATE_EPOCH=$epoch dpkg-deb --root-owner-group -Zxz --build "$package" \
        "$folder/$deb" > /dev/null
    made="$made $deb"
fi
(cd "$folder" && sha256sum $made > SHA256SUMS)
echo "$folder/$name.tar.gz: needs glibc $glibc or newer"
