#!/bin/sh
# Packs the release test binaries for a machine that has a GPU and no Rust.
#
#   scripts/bundle_gpu_tests.sh FOLDER [cargo options, such as --test gpu]
#
# There, FOLDER/run.sh runs them all, those that need a device included, and
# FOLDER/run.sh --sanitize runs them once more under compute-sanitizer (memcheck,
# then racecheck). SLOW=1 adds tests that take a minute or more. Benches (such as
# --bench overhead) are packed too, and not run.
# The library of the example capi is run beside PyTorch, by the name torch_in_process.
set -eu
if [ $# -lt 1 ]; then
    sed -n '2,10s/^# \{0,1\}//p' "$0"
    exit 2
fi
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")/.."
rm -rf "$folder/bin" "$folder/tree" "$folder/tapeloop" "$folder/libcapi.so"
mkdir -p "$folder/bin" "$folder/tree"

# What the benches' results are of.
TAPELOOP_COMMIT=$(git describe --always --dirty)
export TAPELOOP_COMMIT
messages=$(cargo test --release --no-run --message-format=json-render-diagnostics "$@")
executables() {
    echo "$messages" | sed -n "s/.*$1.*\"executable\":\"\([^\"]*\)\".*/\1/p"
}
for binary in $(executables '"kind":\["\(lib\|test\)"\].*"profile":{[^}]*"test":true}'); do
    name=$(basename "$binary")
    strip -o "$folder/bin/${name%-*}" "$binary"
done
benches=
for binary in $(executables '"kind":\["bench"\]'); do
    name=$(basename "$binary")
    benches="$benches ${name%-*}"
done
program=$(executables '"kind":\["bin"\].*"profile":{[^}]*"test":false}')
if [ -n "$program" ]; then
    strip -o "$folder/tapeloop" "$program"
fi
# `cargo test` would build the library as a test: it takes a build of its own, with the
# same features.
features=
while [ $# -gt 0 ]; do
    case $1 in
    --no-default-features) features="$features $1" ;;
    --features)
        features="$features $1 $2"
        shift
        ;;
    esac
    shift
done
# shellcheck disable=SC2086
library=$(cargo build --release --message-format=json-render-diagnostics --example capi $features |
    sed -n 's/.*"crate_types":\["cdylib"\].*"filenames":\["\([^"]*\.so\)".*/\1/p')
strip -o "$folder/libcapi.so" "$library"
# Tests read sources and data where they were compiled, and run the program there.
git ls-files -z | xargs -0 cp --parents -t "$folder/tree"

cat >"$folder/run.sh" <<RUN
#!/bin/sh
# Runs the test binaries; with --sanitize, also under compute-sanitizer.
# TESTS names some of them: TESTS="gpu gpu_engine" ./run.sh
set -u
cd "\$(dirname "\$0")"
link() {
    if [ -n "\$2" ] && [ ! -e "\$2" ]; then
        mkdir -p "\$(dirname "\$2")" && ln -s "\$PWD/\$1" "\$2"
    fi
}
link tree "$PWD"
link tapeloop "$program"
benches="$benches "
RUN
cat >>"$folder/run.sh" <<'RUN'
failed=
tests=${TESTS:-}
if [ -z "$tests" ]; then
    for name in $(ls bin); do
        case $benches in
        *" $name "*) ;;
        *) tests="$tests $name" ;;
        esac
    done
    if [ -e libcapi.so ]; then
        tests="$tests torch_in_process"
    fi
fi
devices=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')
# What cargo ignores by default, as it needs a device, for the tests of devices.
options() {
    case $1 in
    gpu | gpu_engine | gpu_threads | gpu_faults)
        echo "--include-ignored"
        if [ "$devices" -lt 2 ]; then
            echo "--skip two_cards"
        fi
        if [ -z "${SLOW:-}" ]; then
            echo "--skip for_a_minute --skip ten_thousand"
        fi
        ;;
    esac
}
if [ "$devices" -lt 2 ]; then
    echo "not run: tests that need two devices ($devices here)"
fi
# Lists of options have no blanks in them.
# shellcheck disable=SC2046
for name in $tests; do
    echo "== $name"
    case $name in
    torch_in_process)
        if python3 -c "import torch" 2>/dev/null; then
            python3 tree/scripts/torch_in_process.py "$PWD/libcapi.so" || failed="$failed $name"
        else
            echo "skipped: no PyTorch"
        fi
        ;;
    *) "bin/$name" $(options "$name") || failed="$failed $name" ;;
    esac
done
if [ "${1:-}" = --sanitize ]; then
    for tool in memcheck racecheck; do
        for name in $tests; do
            if [ "$name" = torch_in_process ]; then
                continue
            fi
            echo "== $tool $name"
            # Tests provoke refusals, and one a fault: those are no findings. One
            # at a time, as the tool disturbs captures of other threads; without
            # the long runs, which take it minutes, and the test that counts the
            # card's memory, of which the tool takes its part.
            # shellcheck disable=SC2046
            compute-sanitizer --tool "$tool" --report-api-errors no --error-exitcode 9 \
                "bin/$name" $(options "$name") --test-threads=1 --skip a_fault_is_an_error \
                --skip a_long_run --skip a_plan_is_what --skip made_up_structures \
                --skip a_device_is_opened_and_closed --skip a_structure_of_100000 --skip the_samples --skip the_larger_set || failed="$failed $tool:$name"
        done
    done
fi
if [ -n "$failed" ]; then
    echo "failed:$failed"
    exit 1
fi
echo "all passed"
RUN
chmod +x "$folder/run.sh"
du -sh "$folder"
