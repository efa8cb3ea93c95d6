#!/bin/sh
# Builds the documentation as a website, and fails at dead links and anchors:
#
#     scripts/build_site.sh [FOLDER]
#
# FOLDER is target/site unless it is named; its index.html is the front page. If `cargo doc` has run,
# the site has its output too. Needs python3 with venv, and PyPI for the first run.
set -eu
cd "$(dirname "$0")/.."
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
site=$(realpath -m "${1:-$target/site}")
environment=$target/python-for-site
packages=docs/site/requirements.txt

if ! cmp -s "$packages" "$environment/requirements.txt"; then
    rm -rf "$environment"
    python3 -m venv "$environment"
    "$environment/bin/pip" install --quiet --disable-pip-version-check --requirement "$packages"
    cp "$packages" "$environment/requirements.txt"
fi

# A folder with anything but an earlier site stays as it is.
if [ -d "$site" ] && [ ! -e "$site/searchindex.js" ] && [ -n "$(ls -A "$site")" ]; then
    echo "$site: is not empty, and holds no site (fix: name another folder)" >&2
    exit 2
fi
# Without the state of earlier builds, which would keep pages that are gone. A build that fails leaves
# the earlier site as it is.
rm -rf "$target/site-build"
CARGO_DOC=$target/doc "$environment/bin/sphinx-build" --quiet --fresh-env --fail-on-warning --keep-going \
    --conf-dir docs/site --doctree-dir "$target/site-doctrees" . "$target/site-build"
rm -rf "$site"
mkdir -p "$(dirname "$site")"
mv "$target/site-build" "$site"
echo "$site/index.html"
