#!/usr/bin/env bash
# What a newcomer types at sonde pretrain, from a path with a space in it: presets, messages, a folder without recordings.
set -eu
sonde=$1
"$sonde" --help | grep -q '^  pretrain ' || { echo "skipped: this build lacks pretrain"; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/sonde pretrain.XXXXXX"); trap 'rm -rf "$work"' EXIT
fail() { echo "$1"; exit 1; }
cd "$work"

# The preset that needs no data needs none, and standard output is one JSON object.
"$sonde" pretrain --preset synthetic-tiny --set train.steps=2 --set train.pack_tokens=320 --set model.width=32 \
  --out run --json > json 2> log || fail "synthetic-tiny failed: $(cat log)"
grep -q '"step": *2' json && grep -q '"run": *"run"' json || fail "not the JSON of a run: $(cat json)"
! grep -q "$(printf '\r')" log || fail "progress is redrawn where there is no terminal"
"$sonde" pretrain --preset synthetic-tiny --settings | grep -q '^train.lr=2e-3$' || fail "--settings hides what the preset sets"

refused() { # words, arguments
  local words=$1 code=0; shift
  "$sonde" pretrain "$@" > /dev/null 2> log || code=$?
  [ $code = 2 ] && grep -q -- "$words" log || fail "status $code for: $* : $(cat log)"
}
printf 'data:\n  windw: 10 s\n' > typo.yaml
printf 'preset: ecg-tiny\n' > preset.yaml
refused "did you mean 'synthetic-tiny'" --preset synthetic-tny
refused '--resume run' --preset synthetic-tiny --out run
refused '--out' --resume run --out other
refused 'data.dir' --preset ecg-tiny

# The build with readers: a typing error in a file, and a folder in which nothing can be read (not: whose people are unknown).
if "$sonde" --help | grep -q '^  finetune '; then
  refused 'pretrain --preset NAME preset.yaml' preset.yaml
  refused "typo.yaml:2: unknown key 'data.windw'; the nearest known key is 'data.window'" typo.yaml
  "$sonde" synth ecg --out 'a cohort' --subjects 2 --seconds 10 --leads 1 > /dev/null
  "$sonde" pretrain --preset ecg-tiny --data 'a cohort' --subject recording --out 'a run' --set train.steps=1 \
    --set train.pack_tokens=320 --set model.width=32 2> log || fail "a run on recordings failed: $(cat log)"
  grep -q "^next: sonde probe 'a run' --target" log || fail "no next step that can be pasted: $(cat log)"
  mkdir bad
  echo 'x y' > bad/x.hea
  refused 'no recording can be used' --preset ecg-tiny --data bad --out none
  grep -q '1 of them cannot be used (none/manifest.tsv says why)' log && [ -f none/manifest.tsv ] || fail "no reason: $(cat log)"
fi
