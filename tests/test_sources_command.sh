#!/usr/bin/env bash
# Several folders on the command line: pretrain, probe, embed, index, doctor, and what is refused.
set -eu -o pipefail
sonde=$1
"$sonde" --help | grep -q '^  synth ' || { echo "skipped: this build lacks synth"; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/sonde sources XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() { echo "test_sources_command: $*" >&2; exit 1; }
refuses() { # WORDS COMMAND...
  local words=$1
  shift
  if "$@" > refused.txt 2>&1; then fail "was not refused: $*"; fi
  grep -qF -- "$words" refused.txt || fail "'$words' is not said by: $* ($(tail -1 refused.txt))"
}

"$sonde" synth eeg --out cap19 --headset 19 --subjects 4 --recordings 2 --seconds 20 --seed 1 > /dev/null
"$sonde" synth meg --out helmet --subjects 4 --recordings 1 --seconds 10 --rate 125 --seed 2 > /dev/null
tiny=(--preset eeg-meg-tiny --set train.steps=3 --set model.width=16 --set model.heads=2 --set model.depth=1
  --set mae.decoder_width=16 --set mae.decoder_heads=1 --set train.threads=1)

"$sonde" pretrain "${tiny[@]}" --data cap19 --data helmet --set sources.1.data.share=0.6 --fold 0/2 --out run --json > run.json 2> run.txt ||
  fail "pretrain: $(tail -1 run.txt)"
grep -q '"name": "helmet", "share": 0.6' run.json || fail "no shares in the JSON: $(cat run.json)"
grep -q 'of the tokens (asked: 60.00 %)' run.txt || fail "no shares at the end"
grep -q '"share_helmet": ' run/metrics.jsonl || fail "no shares in metrics.jsonl"
grep -q '"sources": \[' run/config.yaml || fail "no sources in config.yaml"
[ -s run/sources/cap19/split.tsv ] && [ -s run/sources/helmet/manifest.tsv ] || fail "splits and manifests of the sources"
"$sonde" pretrain --resume run --set train.steps=4 --json > again.json 2> again.txt ||
  fail "resume: $(tail -1 again.txt)"
grep -q '"start_step": 3' again.json || fail "was not resumed"

# The labels of a source are compared, too.
printf 'file,eyes\n' > who.csv
(cd cap19 && find . -name '*_eeg.edf' | sed -E 's|^\./||; s|(.*)|\1,1|') >> who.csv
"$sonde" pretrain "${tiny[@]}" --data cap19 --data helmet --set sources.0.data.labels=who.csv --out labelled > labelled.txt 2>&1 ||
  fail "labels of a source: $(tail -1 labelled.txt)"
echo >> who.csv
refuses "who.csv holds something else" "$sonde" pretrain --resume labelled --set train.steps=4

printf 'file,eyes\n' > eyes.csv
(cd cap19 && find . -name '*_eeg.edf' | sed -E 's|^\./||; s|(.*task-eyes(closed\|open)_.*)|\1,\2|') >> eyes.csv
"$sonde" probe run --data cap19 --labels eyes.csv --key file --target eyes --seeds 1 --draws 10 > probe.txt 2>&1 ||
  fail "probe: $(tail -1 probe.txt)"
grep -q 'none of the test people stands in pretraining' probe.txt || fail "leakage was not looked at"
"$sonde" embed run --data helmet --out helmet.npy > /dev/null 2>&1 || fail "embed"
refuses "name the one with --data DIR" "$sonde" probe run --labels eyes.csv --key file --target eyes
refuses "name the one with --data DIR" "$sonde" embed run --out all.npy

"$sonde" index cap19 helmet --json > sets.json
[ "$(grep -oE '"name": "(cap19|helmet)"' sets.json | tr '\n' ' ')" = '"name": "cap19" "name": "helmet" ' ]
"$sonde" doctor cap19 helmet --signal 0 > doctor.txt || fail "doctor"
grep -q '^helmet: 4 recordings' doctor.txt || fail "doctor of the second folder"
refuses "given twice" "$sonde" index cap19 ./cap19
refuses "one by one" "$sonde" index cap19 helmet --out m.tsv
refuses "the same folder" "$sonde" pretrain "${tiny[@]}" --data cap19 --data cap19/ --out none
refuses "out of range" "$sonde" pretrain "${tiny[@]}" --data cap19 --data helmet --set sources.0.data.share=-1 --out none
refuses "'lip' is not known" "$sonde" pretrain "${tiny[@]}" --data cap19 --data helmet --set sources.0.data.modality=lip --out none
refuses "no window of 60 s" "$sonde" pretrain "${tiny[@]}" --data cap19 --data helmet --set sources.1.data.window=60s --out none
echo "test_sources_command: passed"
