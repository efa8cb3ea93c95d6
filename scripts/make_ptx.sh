#!/usr/bin/env bash
# Makes the PTX of the kernels that are not among those of kernels/ with nvcc, which must be in the
# path:
#
#     PATH="$PWD/target/cuda-toolkit/nvidia/cu13/bin:$PATH" scripts/make_ptx.sh
#
# The first line has the SHA-256 of the source, which a test compares. nvcc 13.0.88 made the files that
# are in the repository. The older version of PTX is for older drivers; the instructions are all older
# still.
set -euo pipefail
cd "$(dirname "$0")/.."

for source in crates/engine/src/backend/cuda/copies.cu crates/bench/src/bench.cu; do
    digest=$(sha256sum "$source" | cut -d ' ' -f 1)
    ptx=$(nvcc -ptx -O3 --fmad=false -arch=compute_75 -o - "$source")
    {
        echo "// SHA-256 of $(basename "$source"): $digest"
        sed 's/^\.version .*/.version 7.0/' <<<"$ptx"
    } >"${source%.cu}.ptx"
done
