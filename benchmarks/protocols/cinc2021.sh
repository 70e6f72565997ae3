#!/usr/bin/env bash
# Rhythm (NSR, SB, STach) on the twelve-lead recordings of cinc2021_12lead: five folds of recordings (persons unknown).
# usage: cinc2021.sh SONDE DATA OUT
set -eu -o pipefail
sonde=$1 data=$2 out=$3
mkdir -p "$out"
for fold in 0 1 2 3 4; do
  [ -d "$out/fold$fold/checkpoints" ] || "$sonde" pretrain --preset ecg-tiny --data "$data" --subject recording \
    --fold $fold/5 --out "$out/fold$fold" --set train.steps=500 --set train.seed=1001
done
"$sonde" probe "$out"/fold{0,1,2,3,4} --labels "$data/labels.csv" --key record --subject recording --target rhythm \
  --classes NSR,SB,STach --pool mean --pool mean_max_std --metric balanced_accuracy --name rhythm
