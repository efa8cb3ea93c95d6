#!/bin/sh
# Tests a Python wheel on a local cluster of Ray, with actors that are killed.
#
#   scripts/test_ray.sh WHEEL
#
# Installs Ray into target/ray-test, which is kept.
set -eu
if [ $# -ne 1 ] || [ "$1" = --help ] || [ "$1" = -h ]; then
    sed -n '2,6s/^# \{0,1\}//p' "$0"
    exit 2
fi
wheel=$(realpath "$1")
cd "$(dirname "$0")/.."
environment=$(realpath -m "${CARGO_TARGET_DIR:-target}")/ray-test
[ -x "$environment/bin/pytest" ] || {
    rm -rf "$environment"
    python3 -m venv "$environment"
    "$environment/bin/pip" install --quiet "$wheel[ray]" pytest
}
"$environment/bin/pip" install --quiet --force-reinstall --no-deps "$wheel"
# Actors import what lies in the working directory, which must not be the package's sources.
cd python/tests
"$environment/bin/pytest" -q -p no:cacheprovider -W ignore::DeprecationWarning test_ray.py
