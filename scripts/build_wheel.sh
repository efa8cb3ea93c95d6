#!/bin/sh
# Builds the Python wheel: the native module and the command line program.
#
#   scripts/build_wheel.sh FOLDER [ARCHITECTURE | dev]
#
# ARCHITECTURE is x86_64 or aarch64; the default is this machine's. Such a wheel holds the kernels as
# machine code, and is installed on every Linux with glibc 2.28 or newer (2018), as Zig links it.
# With dev the wheel is for this machine alone, and takes little time to build.
#
# Needs Rust with the standard library of the architecture, g++, and Python with venv and pip, which
# install maturin, Zig, cargo-zigbuild and nvcc into target/release-tools; NVCC names another nvcc.
set -eu
if [ $# -lt 1 ] || [ "$1" = --help ] || [ "$1" = -h ]; then
    sed -n '2,11s/^# \{0,1\}//p' "$0"
    exit 2
fi
mkdir -p "$1"
folder=$(cd "$1" && pwd)
machine=${2:-$(uname -m)}
cd "$(dirname "$0")/.."
CARGO_TARGET_DIR=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export CARGO_TARGET_DIR

tools=$CARGO_TARGET_DIR/release-tools
[ -x "$tools/wheel/bin/maturin" ] || {
    python3 -m venv "$tools/wheel"
    "$tools/wheel/bin/pip" install --quiet 'maturin>=1.9,<2'
}
if [ "$machine" = dev ]; then
    cargo build --quiet --locked --bin tapeloop
    program=$CARGO_TARGET_DIR/debug/tapeloop
    set --
else
    [ -x "$tools/zig/bin/cargo-zigbuild" ] || {
        python3 -m venv "$tools/zig"
        "$tools/zig/bin/pip" install --quiet cargo-zigbuild ziglang
    }
    PATH=$tools/zig/bin:$PATH
    export PATH
    # For all GPUs.
    unset TAPELOOP_CUDA_TARGETS
    if [ -z "${NVCC:-}" ]; then
        NVCC=$tools/cuda/nvidia/cu13/bin/nvcc
        [ -x "$NVCC" ] || python3 -m pip install --quiet --target "$tools/cuda" \
            nvidia-cuda-nvcc==13.0.* nvidia-cuda-crt==13.0.* nvidia-cuda-runtime==13.0.* \
            nvidia-cuda-cccl==13.0.* nvidia-nvvm==13.0.*
        export NVCC
    fi
    target=$machine-unknown-linux-gnu
    # As build_release.sh, so that both scripts build one program, and the second one finds it built.
    TAPELOOP_COMMIT=$(git describe --always --dirty 2> /dev/null || true)
    [ -z "$TAPELOOP_COMMIT" ] || export TAPELOOP_COMMIT
    cargo zigbuild --locked --profile dist --bin tapeloop --target "$target.2.17"
    program=$CARGO_TARGET_DIR/$target/dist/tapeloop
    set -- --profile dist --zig --compatibility manylinux_2_28 --target "$target"
fi
mkdir -p python/pytapeloop/bin
cp "$program" python/pytapeloop/bin/tapeloop
chmod 755 python/pytapeloop/bin/tapeloop
"$tools/wheel/bin/maturin" build --quiet --locked --manifest-path python/Cargo.toml \
    --out "$folder" "$@"
