#!/usr/bin/env bash
# sonde synth eeg and meg: a BIDS data set each, that index takes whole; what is refused.
set -eu
sonde=$1
"$sonde" --help | grep -q '^  synth ' || { echo "skipped: this build lacks synth"; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/sonde synth XXXXXX")
trap 'rm -rf "$work"' EXIT
fail() { echo "FAILED: $1"; cat "$work/err" 2> /dev/null || true; exit 1; }

"$sonde" synth eeg --out "$work/eeg" --subjects 3 --recordings 2 --seconds 6 --headset 19 --json > "$work/out" 2> "$work/err" || fail "eeg"
grep -q '"recordings": *6' "$work/out" || fail "eeg: the number of recordings"
"$sonde" synth meg --out "$work/meg" --subjects 2 --recordings 1 --seconds 4 --rate 100 > "$work/out" 2> "$work/err" || fail "meg"
grep -q '2 recordings of 2 people' "$work/out" || fail "meg: the number of recordings"
for kind in eeg meg; do
  [ -f "$work/$kind/dataset_description.json" ] && [ -f "$work/$kind/participants.tsv" ] || fail "$kind: tables"
  "$sonde" index "$work/$kind" --out "$work/$kind.tsv" > "$work/out" 2> "$work/err" || fail "index of $kind"
done
[ "$(grep -c '^sub-.*_eeg.edf' "$work/eeg.tsv")" = 6 ] || fail "the manifest of eeg"
[ "$(grep -c '^sub-.*_meg.fif' "$work/meg.tsv")" = 2 ] || fail "the manifest of meg"

# The same seed gives the same bytes; another gives others.
"$sonde" synth eeg --out "$work/again" --subjects 1 --recordings 1 --seconds 6 --headset 19 > /dev/null
cmp "$work/eeg/sub-001/eeg/sub-001_task-eyesclosed_eeg.edf" "$work/again/sub-001/eeg/sub-001_task-eyesclosed_eeg.edf" || fail "not the same bytes"
"$sonde" synth eeg --out "$work/other" --subjects 1 --recordings 1 --seconds 6 --headset 19 --seed 1 > /dev/null
if cmp -s "$work/eeg/sub-001/eeg/sub-001_task-eyesclosed_eeg.edf" "$work/other/sub-001/eeg/sub-001_task-eyesclosed_eeg.edf"; then fail "another seed gave the same data"; fi

# Nothing is overwritten; an option of another kind is refused.
if "$sonde" synth eeg --out "$work/meg" 2> "$work/err"; then fail "a data set was written to"; fi
grep -q "choose a new folder" "$work/err" || fail "the refusal does not say why"
for kind in ecg eeg meg; do # whatever file is there, and it stays as it is
  for name in labels.csv notes.txt README participants.json s00000_0.dat sub-001; do
    rm -rf "$work/mine"; mkdir "$work/mine"; echo mine > "$work/mine/$name"
    code=0; "$sonde" synth $kind --out "$work/mine" --subjects 1 --recordings 1 --seconds 12 > "$work/out" 2> "$work/err" || code=$?
    [ $code = 1 ] || fail "synth $kind wrote beside $name: status $code"
    grep -q "'$name' is in it.*choose a new folder" "$work/err" || fail "synth $kind does not name $name"
    [ "$(ls "$work/mine")" = "$name" ] && [ "$(cat "$work/mine/$name")" = mine ] || fail "synth $kind touched $name"
  done
  rm -rf "$work/mine"; mkdir "$work/mine"; echo x > "$work/mine/.hidden"
  "$sonde" synth $kind --out "$work/mine" --subjects 1 --recordings 1 --seconds 12 --rate 250 > "$work/out" 2> "$work/err" || fail "a hidden file hinders synth $kind"
done
"$sonde" synth --help | grep -q 'any other is refused' || fail "the help does not say what --out refuses"
for wrong in "eeg --leads 12" "meg --headset 19" "ecg --headset 19" "eeg --headset 20" "meg --rate 20"; do
  code=0; "$sonde" synth $wrong --out "$work/none" 2> "$work/err" || code=$?
  [ $code != 0 ] && [ -s "$work/err" ] || fail "synth $wrong gave status $code"
  [ ! -e "$work/none" ] || fail "synth $wrong left a folder"
done
