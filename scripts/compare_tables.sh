#!/bin/sh
# Compares the tables of two programs, byte by byte.
#
#   scripts/compare_tables.sh OLD NEW INPUT... [-- OPTIONS OF BOTH]
#
# Each INPUT is a file, a folder or a config (NAME.toml), without spaces in its path, and is run with
# all features. `run.json`, which has times, is left out. Prints a line for each input, and ends with 1 if one differs.
set -euf
if [ $# -lt 3 ]; then
    sed -n '2,8s/^# \{0,1\}//p' "$0"
    exit 2
fi
old=$1 new=$2
shift 2
inputs=
while [ $# -gt 0 ] && [ "$1" != -- ]; do
    inputs="$inputs $1"
    shift
done
[ $# -eq 0 ] || shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# A feature that is named computes something, also if it computes nothing by default; but for contacts.
names=$("$old" features | sed '/^$/,$d; s/ .*/,/' | tr -d '\n')
every="--features ${names%,} --set contacts.atom=ca --set coordinates=[\"ca\"]"
failed=0
for input in $inputs; do
    case $input in
    *.toml) options= ;;
    *) options=$every ;;
    esac
    for side in old new; do
        eval "program=\$$side"
        rm -rf "$folder/tables"
        # The exit code and rejected.jsonl say what was rejected, and are compared too.
        code=0
        # shellcheck disable=SC2086
        "$program" run "$input" $options -o "$folder/tables" "$@" >"$folder/$side.log" 2>&1 || code=$?
        if [ ! -e "$folder/tables/run.json" ]; then
            echo "$input: the $side program wrote no tables"
            cat "$folder/$side.log"
            exit 1
        fi
        (cd "$folder/tables" && find . -type f ! -name run.json | LC_ALL=C sort |
            xargs sha256sum) >"$folder/$side.sums"
        echo "exit code $code" >>"$folder/$side.sums"
    done
    if diff "$folder/old.sums" "$folder/new.sums" >"$folder/difference"; then
        echo "$input: $(grep -vc exit "$folder/new.sums") files are equal"
    else
        echo "$input: tables differ"
        cat "$folder/difference"
        failed=1
    fi
done
exit $failed
