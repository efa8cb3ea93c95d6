#!/usr/bin/env bash
# Compares the engine's replay with the same work in CUDA C++ and in PyTorch, on a
# machine that has a GPU and nvcc; PyTorch is left out where it is not installed.
#
#   scripts/compare_replay.sh [--rounds N] [--out FOLDER] [--nvcc PATH] [BENCH...]
#
# BENCH is the command that runs the engine's side, such as the binary `replay` of
# scripts/bundle_gpu_tests.sh; without one it is `cargo bench --bench replay --`.
# Rounds of the programs alternate, so that what changes on the machine meanwhile
# meets all of them. Prints a table, and fails if a limit does not hold.
set -euo pipefail
rounds=5
out=
nvcc=${NVCC:-}
while [ $# -gt 0 ]; do
    case $1 in
    --rounds) rounds=$2; shift 2 ;;
    --out) out=$2; shift 2 ;;
    --nvcc) nvcc=$2; shift 2 ;;
    --help | -h) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) break ;;
    esac
done
root=$(cd "$(dirname "$0")/.." && pwd)
if [ $# -eq 0 ]; then
    set -- cargo bench --quiet --manifest-path "$root/Cargo.toml" --bench replay --
elif [ -e "$1" ]; then
    # It is run from wherever this is.
    bench=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
    shift
    set -- "$bench" "$@"
fi
if [ -z "$out" ]; then
    out=$(mktemp -d)
fi
mkdir -p "$out"

NVCC=$nvcc "$root/scripts/build_references.sh" "$out" cuda_cpp
if [ ! -x "$out/reference" ]; then
    exit 2
fi

torch=
if python3 -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2>/dev/null; then
    torch=yes
else
    echo "no PyTorch with CUDA here: left out" >&2
fi

# One program's lines, marked with their round.
run() {
    local round=$1 who=$2
    shift 2
    echo "round $round of $rounds: $who" >&2
    if ! "$@" >"$out/run.txt" 2>"$out/$who-$round.err"; then
        echo "$who failed:" >&2
        tail -n 20 "$out/$who-$round.err" >&2
        failed=yes
    fi
    sed -n "s/^{/{\"round\":$round,/p" "$out/run.txt" >>"$out/lines.jsonl"
}
failed=
: >"$out/lines.jsonl"
for round in $(seq "$rounds"); do
    run "$round" cpp "$out/reference"
    run "$round" rust "$@"
    if [ -n "$torch" ]; then
        run "$round" torch python3 "$root/benches/reference/torch_loop.py"
    fi
done
python3 "$root/scripts/compare_replay.py" "$out/lines.jsonl" | tee "$out/table.txt" || failed=yes
echo "lines and table: $out" >&2
[ -z "$failed" ]
