#!/bin/sh
# Tests a Python wheel in a fresh environment without a Rust compiler on the path.
#
#   scripts/test_wheel.sh [WHEEL]
#
# Without WHEEL it builds one that takes little time to build. A given WHEEL has to hold the GPU
# kernels.
set -eu
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
wheel=${1:-}
if [ -n "$wheel" ]; then
    wheel=$(realpath "$wheel")
    export TAPELOOP_KERNELS=required
else
    rm -rf "$target/wheels"
    scripts/build_wheel.sh "$target/wheels" dev
    wheel=$(echo "$target"/wheels/*.whl)
fi
environment=$target/wheel-test
rm -rf "$environment"
python3 -m venv "$environment"
"$environment/bin/pip" install --quiet "$wheel[test]"
PATH=$environment/bin:/usr/bin:/bin
TAPELOOP_WHEEL=$wheel
export PATH TAPELOOP_WHEEL
! command -v cargo || { echo "cargo is on the path" >&2; exit 1; }
cd python
pytest -q -p no:cacheprovider tests
