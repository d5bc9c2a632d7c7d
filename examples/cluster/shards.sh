#!/bin/sh
# SPDX-License-Identifier: MIT
# Asks a question of a whole run by N processes at once, with nothing but a shell.
# usage: shards.sh N TBDQ-ARGUMENT...      (TBDQ: the program, if it is not in PATH)
set -eu
count=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
k=1
while [ "$k" -le "$count" ]; do
    "${TBDQ:-tbdq}" -q -j 1 --shard "$k/$count" "$@" >"$folder/$(printf %08d "$k")" &
    k=$((k + 1))
done
wait
"${TBDQ:-tbdq}" unite "$folder"/*
