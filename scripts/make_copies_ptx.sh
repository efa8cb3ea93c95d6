#!/usr/bin/env bash
# Makes src/backend/cuda/copies.ptx of copies.cu with nvcc, which must be in the path:
#
#     PATH="$PWD/target/cuda-toolkit/nvidia/cu13/bin:$PATH" scripts/make_copies_ptx.sh
#
# The first line has the SHA-256 of copies.cu, which a test compares. nvcc 13.0.88 made the file that
# is in the repository. The older version of PTX is for older drivers; the instructions are all older
# still.
set -euo pipefail
cd "$(dirname "$0")/../src/backend/cuda"
digest=$(sha256sum copies.cu | cut -d ' ' -f 1)
ptx=$(nvcc -ptx -arch=compute_75 -o - copies.cu)
{
    echo "// SHA-256 of copies.cu: $digest"
    sed 's/^\.version .*/.version 7.0/' <<<"$ptx"
} >copies.ptx
