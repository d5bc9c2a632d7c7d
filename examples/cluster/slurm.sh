#!/bin/sh
# SPDX-License-Identifier: MIT
# One task of a Slurm array: asks its shard, into a file of FOLDER.
#
#     export FOLDER=$HOME/answer; mkdir -p "$FOLDER"
#     job=$(sbatch --parsable --array=1-100 examples/cluster/slurm.sh -t TRACE count store by line)
#     sbatch --dependency=afterany:$job --wrap='tbdq unite $FOLDER/*'
#
# Each task is one processor. What a task did not finish, unite says is missing; sbatch --array=K asks it again.
#SBATCH --cpus-per-task=1
set -eu
name=$FOLDER/$(printf %08d "$SLURM_ARRAY_TASK_ID")
"${TBDQ:-tbdq}" -q -j 1 --shard "$SLURM_ARRAY_TASK_ID/${SLURM_ARRAY_TASK_MAX:-$SLURM_ARRAY_TASK_COUNT}" "$@" >"$name.part" || [ $? -le 3 ]
mv "$name.part" "$name"
