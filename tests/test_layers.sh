#!/usr/bin/env bash
# Layers only look down, and the check that says so can fail.
set -eu
bash tools/check_layers.sh
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
for folder in tools core kernels encoders objectives modalities datasets engine benchmarks cli tests; do
  if [ -d "$folder" ]; then cp -r "$folder" "$work/"; fi # a folder without files is not in a clone
done
printf '#include "engine/train.h"\n' > "$work/core/planted.c"
if bash "$work/tools/check_layers.sh" > "$work/out"; then echo "a planted upward include was not found"; exit 1; fi
grep -q 'core must not include engine/train.h' "$work/out"
