#!/bin/sh
# Makes the Python environment of the tests, target/python-for-tests, with the packages that
# python/pyproject.toml and the tests of the program name. It is kept until one of the names changes.
set -eu
cd "$(dirname "$0")/.."
environment=$(realpath -m "${CARGO_TARGET_DIR:-target}")/python-for-tests
packages=$(python3 - <<'PYTHON'
import re
text = open("python/pyproject.toml").read()
groups = re.findall(r"^(?:ray|test) = \[(.*?)\]$", text, re.M | re.S)
print("\n".join(re.findall(r'"([^"]+)"', " ".join(groups))))
PYTHON
)
# `tapeloop validate` needs scipy.
packages="$packages
scipy"
[ "$(cat "$environment/packages.txt" 2>/dev/null)" = "$packages" ] && exit
rm -rf "$environment"
python3 -m venv "$environment"
# uv installs them in a tenth of pip's time. It reads none of pip's settings, such as a mirror.
"$environment/bin/pip" install --quiet uv
echo "$packages" >"$environment/requirements.txt"
"$environment/bin/uv" pip install --quiet --python "$environment/bin/python" \
    --requirements "$environment/requirements.txt" ||
    "$environment/bin/pip" install --quiet --requirement "$environment/requirements.txt"
echo "$packages" >"$environment/packages.txt"
