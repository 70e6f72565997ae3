#!/usr/bin/env bash
# Beats N against V (AAMI groups) on mitbih_arrhythmia_5min, lead MLII, beat plus and minus half a second: pretrained on DS1,
# tested from DS1 to DS2, without record 201 (it and 202 are one person). The beat's window alone, the same second within ten
# seconds of context, and fine-tuning on the beat's window.
# usage: mitbih.sh SONDE DATA OUT
set -eu -o pipefail
sonde=$1 data=$2 out=$3
labels="--labels $data/record_counts.csv --key record --subject subject"
beats="--split split:DS1:DS2 --exclude 201 --target annotation:aami --classes N,V --window 1 --metric balanced_accuracy"
mkdir -p "$out"
[ -d "$out/ds1/checkpoints" ] || "$sonde" pretrain --preset ecg-tiny --data "$data" $labels --split split --out "$out/ds1" \
  --set data.exclude=201 --set ecg.leads=MLII --set train.seed=1001 --set train.steps=1500
"$sonde" probe "$out/ds1" $labels $beats --pool mean --pool mean_max_std --name beats
"$sonde" probe "$out/ds1" $labels $beats --pool mean --pool mean_max_std --context 10 --name beats_context
rm -rf "$out/finetune"
"$sonde" finetune "$out/ds1" $labels $beats --scratch --out "$out/finetune"
