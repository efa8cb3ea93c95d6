#!/usr/bin/env bash
# Builds the programs that `tapeloop bench` runs beside the engine, as far as this
# machine has what they need, and writes FOLDER/references.toml with what there is.
#
#   scripts/build_references.sh FOLDER [NAME...]
#
# NAME is one of cuda_cpp, torch, cupy and cpu_tools; without one it is all. nvcc is
# $NVCC, on the path, or in $CUDA_HOME; Python is the first of $PYTHON, that of
# $VIRTUAL_ENV, python3 and python that has the packages. What is left out is told.
set -euo pipefail
if [ $# -eq 0 ] || [ "$1" = --help ] || [ "$1" = -h ]; then
    sed -n '2,9s/^# \{0,1\}//p' "$0"
    exit $(($# == 0 ? 2 : 0))
fi
mkdir -p "$1"
out=$(cd "$1" && pwd)
shift
names=${*:-cuda_cpp torch cupy cpu_tools}
here=$(cd "$(dirname "$0")/../benches/reference" && pwd)
toml=$out/references.toml
echo "# Written by scripts/build_references.sh." >"$toml"

left_out() {
    echo "$1: left out: $2" >&2
}

# As a TOML string.
quoted() {
    printf '"%s"' "$(printf '%s' "$1" | sed 's/[\\"]/\\&/g')"
}

# Name and command.
reference() {
    local name=$1 words=
    shift
    for word in "$@"; do
        words="$words${words:+, }$(quoted "$word")"
    done
    printf '\n[[reference]]\nname = "%s"\ncommand = [%s]\n' "$name" "$words" >>"$toml"
    echo "$name: $*" >&2
}

find_nvcc() {
    for candidate in "${NVCC:-}" "$(command -v nvcc || true)" "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc"; do
        if [ -f "$candidate" ] && [ -x "$candidate" ]; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

# For this machine's card, or a Hopper where there is none. NVIDIA's Python packages
# have the runtime where nvcc does not look for it.
compile() {
    local options=(-O3 -std=c++17 -rdc=true -lcudadevrt -o "$out/reference")
    local lib
    lib=$(dirname "$nvcc")/../lib
    if [ -e "$lib/libcudart_static.a" ]; then
        options+=("-L$lib")
    fi
    "$nvcc" "${options[@]}" -arch=native "$here/reference.cu" >"$out/nvcc.txt" 2>&1 ||
        "$nvcc" "${options[@]}" -arch=sm_90 "$here/reference.cu" >>"$out/nvcc.txt" 2>&1
}

cuda_cpp() {
    rm -f "$out/reference"
    if ! nvcc=$(find_nvcc); then
        left_out cuda_cpp "no nvcc: set NVCC to its path"
        return
    fi
    echo "cuda_cpp: compiling with $nvcc" >&2
    if ! compile; then
        cat "$out/nvcc.txt" >&2
        left_out cuda_cpp "it does not compile"
    else
        reference cuda_cpp "$out/reference" --serve
    fi
}

# The first Python in which a check succeeds.
find_python() {
    for candidate in "${PYTHON:-}" "${VIRTUAL_ENV:-}/bin/python3" python3 python; do
        candidate=$(command -v "$candidate" || true)
        if [ -n "$candidate" ] && "$candidate" -c "$1" >"$out/python.txt" 2>&1; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

# The Python for a reference; without one the reference is left out.
python_for() {
    local name=$1 check=$2 missing=$3
    echo "$name: looking for a Python" >&2
    if ! python=$(find_python "$check"); then
        left_out "$name" "$missing"
        return 1
    fi
}

torch() {
    python_for torch 'import torch; torch.zeros(1, device="cuda")' \
        "no Python here has PyTorch with a CUDA device" || return 0
    reference torch "$python" "$here/torch_loop.py" --serve
}

cupy() {
    python_for cupy 'import cupy; cupy.zeros(1)' "no Python here has CuPy with a CUDA device" || return 0
    reference cupy "$python" "$here/cupy_loop.py" --serve
}

# They run with what there is of them.
cpu_tools() {
    python_for cpu_tools 'import gemmi, numpy' "no Python here has gemmi and NumPy" || return 0
    local rustsasa=()
    echo "cpu_tools: compiling RustSASA, which takes minutes" >&2
    if command -v cargo >/dev/null && cargo build --release \
        --manifest-path "$here/rustsasa/Cargo.toml" --target-dir "$out/rustsasa"; then
        rustsasa=(env "RUSTSASA=$out/rustsasa/release/rustsasa")
    else
        left_out rustsasa "cargo is missing, or does not build it"
    fi
    reference cpu_tools ${rustsasa[@]+"${rustsasa[@]}"} "$python" "$here/cpu_tools.py" --serve
}

for name in $names; do
    case $name in
    cuda_cpp | torch | cupy | cpu_tools) "$name" ;;
    *)
        echo "no reference is called $name" >&2
        exit 2
        ;;
    esac
done
