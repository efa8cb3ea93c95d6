#!/usr/bin/env bash
# Kills runs at random moments (KILL, TERM, INT, HUP) and checks what each leaves: the parts
# that run.json counts can be read and agree across the tables, and run.json says whether the
# run finished. The number of kills is the first argument.
set -euo pipefail
cd "$(dirname "$0")/.."
TAPELOOP_KILLS="${1:-200}" cargo test --locked --test cli kills:: -- --nocapture
