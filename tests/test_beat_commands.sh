#!/usr/bin/env bash
# Beat tokens from the command line: pretrain, probe of recordings and of beats, embed, fine-tune; what is refused.
set -eu
sonde=$1
"$sonde" --help | grep -q '^  finetune ' || { echo "skipped: this build lacks finetune"; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/sonde beats.XXXXXX"); trap 'rm -rf "$work"' EXIT
fail() { echo "$1"; exit 1; }
cd "$work"
"$sonde" synth ecg --out cohort --subjects 16 --seconds 21 --leads 1 --seed 5 > /dev/null
tiny="--set model.width=16 --set model.depth=1 --set model.heads=2 --set mae.decoder_width=8 --set mae.decoder_heads=1
  --set train.steps=3 --set train.pack_tokens=160 --set train.threads=1"
people="--labels cohort/labels.csv --key record --subject subject"
"$sonde" pretrain --preset ecg-beats-tiny --data cohort $people --fold 0/2 --out f0 $tiny 2> log || fail "pretrain: $(cat log)"
grep -q 'beats: [0-9]* in [0-9]* recordings; .*nobeat: 0 recordings without any' log || fail "no count of beats: $(cat log)"
grep -q '"nobeat": 0' f0/metrics.jsonl || fail "no count in the metrics"
"$sonde" pretrain --preset ecg-beats-tiny --data cohort $people --fold 1/2 --out f1 $tiny 2> log || fail "pretrain: $(cat log)"

# Recordings; then beats: a token is exactly its beat when the item is the tolerance around the annotation.
"$sonde" probe f0 f1 $people --target sex --pool mean --seeds 1 --draws 20 --json > json 2> log || fail "probe: $(cat log)"
"$sonde" probe f0 f1 $people --target annotation:code --classes N,V --window 0.3 --context 5 --pool mean --seeds 1 --draws 20 \
  --metric balanced_accuracy --json > json 2> log || fail "probe of beats: $(cat log)"
grep -q '"context_s": *5' json || fail "no context"
"$sonde" embed f0 --data cohort --out e.npy 2> log || fail "embed: $(cat log)"
[ "$(wc -l < e.tsv)" = 33 ] || fail "not a line for each of 32 recordings: $(cat e.tsv)"
"$sonde" finetune f0 f1 $people --target sex --out tuned --set finetune.steps=4 --set finetune.eval_every=2 > /dev/null 2> log ||
  fail "finetune: $(cat log)"

refused() { # words, arguments
  local words=$1 code=0; shift
  "$sonde" pretrain --preset ecg-beats-tiny --data cohort $people --out none $tiny "$@" > /dev/null 2> log || code=$?
  [ $code = 2 ] && grep -q -- "$words" log || fail "status $code for: $* : $(cat log)"
}
refused "beats have no target 'spectrum'" --set mae.target=spectrum
refused 'beats are found above 40 Hz' --set data.rate=40 --set data.filter_high=15
refused 'no signal to convolve' --set model.embedder=conv
