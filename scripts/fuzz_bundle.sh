#!/bin/sh
# Packs the fuzz targets for an x86-64 Linux machine without Rust.
#
#   scripts/fuzz_bundle.sh FOLDER
#
# Writes FOLDER/tapeloop-fuzz.tar.xz. There, `tar -xJf tapeloop-fuzz.tar.xz` and
# `tapeloop-fuzz/run.sh SECONDS` run all targets side by side, and print for each the inputs that
# were executed, the processor time and the findings. The archive has the C library that the program
# was built with, so the machine may have any. Needs cargo-fuzz and a nightly compiler.
set -eu
if [ $# -ne 1 ]; then
    sed -n '2,10s/^# \{0,1\}//p' "$0"
    exit 2
fi
mkdir -p "$1"
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."

cargo +nightly fuzz build
program=fuzz/target/x86_64-unknown-linux-gnu/release/tapeloop

stage=$(mktemp -d)
trap 'rm -r "$stage"' EXIT
bundle=$stage/tapeloop-fuzz
mkdir -p "$bundle/lib"
strip -o "$bundle/tapeloop" "$program"
# The loader and the libraries, each by the name that the program asks for.
ldd "$program" | grep -o '/[^ ]*' | while read -r library; do
    cp -L "$library" "$bundle/lib/"
done
loader=$(basename "$(ldd "$program" | grep -o '/[^ ]*ld-linux[^ ]*')")
cp -r tests/data/fuzz "$bundle/seeds"
# Larger inputs, which are no part of the stored ones.
cp tests/data/small/*.pdb tests/data/small/*.cif "$bundle/seeds/text/"
for file in tests/data/binary_cif/*.gz; do
    gzip -dc "$file" >"$bundle/seeds/file/$(basename "${file%.gz}")"
done
git describe --always --dirty >"$bundle/commit"

cat >"$bundle/run.sh" <<RUN
#!/bin/sh
# Runs all targets side by side for SECONDS, or those that TARGETS names:
#
#   [TARGETS="xtc dcd"] ./run.sh SECONDS
#
# Corpora grow in corpus/, and findings come into findings/TARGET. Exit status 1 if there are any.
loader=lib/$loader
RUN
cat >>"$bundle/run.sh" <<'RUN'
set -u
if [ $# -ne 1 ]; then
    sed -n '2,6s/^# \{0,1\}//p' "$0"
    exit 2
fi
seconds=$1
cd "$(dirname "$0")" || exit 2
targets=${TARGETS:-$(ls seeds)}
# Targets write their inputs to files: to memory, where there is such a folder.
temp=$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d)
trap 'rm -rf "$temp"' EXIT
trap 'touch "$temp/stop"; kill $(cat "$temp"/*.pid) 2>/dev/null' INT TERM

# Files of inputs that failed; slow ones are none.
findings() {
    ls "findings/$1" | grep -vc '^slow-unit'
}

length() {
    case $1 in
    condition) echo 400 ;;
    config) echo 4000 ;;
    annotations) echo 20000 ;;
    *) echo 30000 ;;
    esac
}
# A process that stops at a finding is started again, until the time is over.
fuzz() {
    name=$1
    mkdir -p "corpus/$name" "findings/$name" "$temp/$name"
    end=$(($(date +%s) + seconds))
    while left=$((end - $(date +%s))) && [ "$left" -gt 0 ] && [ ! -e "$temp/stop" ]; do
        before=$(findings "$name")
        TARGET=$name TMPDIR=$temp/$name ASAN_OPTIONS=detect_odr_violation=0 \
            "$loader" --library-path lib ./tapeloop "corpus/$name" "seeds/$name" \
            "-artifact_prefix=findings/$name/" "-max_total_time=$left" \
            "-max_len=$(length "$name")" -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 \
            >>"$name.log" 2>&1 &
        echo $! >"$temp/$name.pid"
        wait $! && continue
        if [ "$(findings "$name")" = "$before" ] && [ ! -e "$temp/stop" ]; then
            echo "$name ended: see $name.log" >&2
            break
        fi
    done
    times >"$temp/$name.times"
}
start=$(date +%s)
for name in $targets; do
    : >"$name.log"
    fuzz "$name" &
done
wait
# A signal ends the first one.
wait
echo "tapeloop $(cat commit), $(($(date +%s) - start)) s"
printf '%-12s %14s %14s %9s\n' target executions "CPU seconds" findings
found=0
for name in $targets; do
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$name.log" | awk '{ sum += $1 } END { print sum + 0 }')
    # The second line of `times` is of the children: user and system, as 1m2.3s.
    cpu=$(sed -n 2p "$temp/$name.times" | tr 'ms' '  ' | awk '{ print $1 * 60 + $2 + $3 * 60 + $4 }')
    count=$(findings "$name")
    found=$((found + count))
    printf '%-12s %14s %14.0f %9s\n' "$name" "$runs" "$cpu" "$count"
done
[ "$found" -eq 0 ]
RUN
chmod +x "$bundle/run.sh"
tar -C "$stage" -c tapeloop-fuzz | xz -T0 -9 >"$folder/tapeloop-fuzz.tar.xz"
ls -l "$folder/tapeloop-fuzz.tar.xz"
