#!/usr/bin/env bash
# A disk that fills up: the run stops with an `io` error that says so, older checkpoints stay whole, and after room was made
# the run goes on from them to the same bytes as a run that never met the full disk.
set -eu
sonde=$1
work=$(mktemp -d)
trap 'umount "$work/small" 2>/dev/null || true; rm -rf "$work"' EXIT
mkdir "$work/small"
if ! mount -t tmpfs -o size=3m tmpfs "$work/small" 2>/dev/null; then
  echo "skipped: needs the right to mount a small tmpfs"
  exit 77
fi
settings="--set synthetic.windows=100 --set synthetic.tokens_least=12 --set synthetic.tokens_most=24 --set model.width=64
 --set model.heads=2 --set model.depth=2 --set mae.decoder_width=32 --set mae.decoder_heads=1 --set train.pack_tokens=256
 --set train.steps=20 --set train.checkpoint_every=5 --set train.keep_last=10 --set train.threads=1"
"$sonde" pretrain --data synthetic $settings --out "$work/whole" 2> /dev/null
if "$sonde" pretrain --data synthetic $settings --out "$work/small/run" 2> "$work/err"; then
  echo "the run did not notice that the disk is full"
  exit 1
fi
grep -q 'io error' "$work/err"
grep -Eq 'MiB|No space left' "$work/err"
ls "$work/small/run/checkpoints" | grep -q step-000000005
mount -o remount,size=100m "$work/small"
"$sonde" pretrain --resume "$work/small/run" 2> "$work/err2" || { cat "$work/err2"; exit 1; }
for file in metrics.jsonl checkpoints/step-000000020/model.safetensors checkpoints/step-000000020/optimizer.safetensors; do
  cmp "$work/whole/$file" "$work/small/run/$file"
done
# A folder in which nothing can be written.
if "$sonde" pretrain --data synthetic $settings --out /proc/sonde-run 2> "$work/err3"; then exit 1; fi
grep -q 'io error' "$work/err3"
echo "a full disk was reported, and the run went on from its last checkpoint"
