#!/bin/sh
# SPDX-License-Identifier: MIT
# The same with GNU parallel: JOBS at a time, on this machine, or on those of PARALLEL='--sshloginfile machines', which must see the trace.
# usage: parallel.sh N TBDQ-ARGUMENT...    (TBDQ: the program, if it is not in PATH)
set -eu
count=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
seq "$count" | parallel --quote --jobs "${JOBS:-100%}" --results "$folder/{}/" \
    "${TBDQ:-tbdq}" -q -j 1 --shard "{}/$count" "$@" >/dev/null || true
"${TBDQ:-tbdq}" unite "$folder"/*/stdout
