#!/usr/bin/env bash
# Makes the PTX of the kernels that are not among those of kernels/ with nvcc, which must be in the
# path:
#
#     PATH="$PWD/target/cuda-toolkit/nvidia/cu13/bin:$PATH" scripts/make_ptx.sh
#
# The first line has the SHA-256 of the source, which a test compares. nvcc 13.0.88 made the files that
# are in the repository. The older versions of PTX are for older drivers; the instructions are all older
# still. The files that end in _90 are for devices of compute capability 9.0 and later, on which these
# kernels wait for their dependencies (programmatic dependent launch).
set -euo pipefail
cd "$(dirname "$0")/.."

# make FILE ARCHITECTURE VERSION ENDING: the PTX of a file, in a version of PTX.
make() {
    local source=$1 digest ptx
    digest=$(sha256sum "$source" | cut -d ' ' -f 1)
    ptx=$(nvcc -ptx -O3 --fmad=false -arch="$2" -o - "$source")
    {
        echo "// SHA-256 of $(basename "$source"): $digest"
        sed "s/^\.version .*/.version $3/" <<<"$ptx"
    } >"${source%.cu}$4"
}

for source in crates/engine/src/backend/cuda/copies.cu crates/bench/src/bench.cu; do
    make "$source" compute_75 7.0 .ptx
    make "$source" compute_90 7.8 _90.ptx
done
