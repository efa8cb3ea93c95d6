#!/bin/sh
# Checks that a program starts on distributions with glibc VERSION, and prints the version
# that it needs.
#
#   scripts/check_glibc.sh PROGRAM VERSION
#
# A newer symbol, or a library that is not part of glibc, is an error: the program would not
# start there. Needs readelf, which reads programs of every architecture.
set -eu
if [ $# -ne 2 ]; then
    sed -n '2,8s/^# \{0,1\}//p' "$0"
    exit 2
fi
program=$1
newest=$2

readelf -h "$program" > /dev/null
needed=$(readelf -VW "$program" | grep -o 'GLIBC_[0-9][0-9.]*' | sort -uV | tail -n 1)
needed=${needed#GLIBC_}
if [ "$(printf '%s\n%s\n' "$needed" "$newest" | sort -V | tail -n 1)" != "$newest" ]; then
    echo "$program: needs glibc $needed, and may need $newest at most" >&2
    exit 1
fi
libraries=$(readelf -dW "$program" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
if [ -z "$libraries" ]; then
    echo "$program: a static program cannot open the CUDA driver" >&2
    exit 1
fi
for library in $libraries; do
    case $library in
    libc.so.6 | libm.so.6 | libdl.so.2 | libpthread.so.0 | librt.so.1 | ld-linux*) ;;
    *)
        echo "$program: needs $library, which some distributions lack" >&2
        exit 1
        ;;
    esac
done

echo "$needed"
