#!/usr/bin/env bash
# sonde synth, and sonde inspect --beats and --leads on what it wrote; from a path with a space in it.
set -eu
sonde=$1
"$sonde" --help | grep -q '^  synth ' || { echo "skipped: this build lacks synth"; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/sonde ecg.XXXXXX"); trap 'rm -rf "$work"' EXIT
fail() { echo "$1"; exit 1; }

"$sonde" synth ecg --out "$work/a" --subjects 3 --seconds 12 --seed 4 > "$work/out"
grep -q '^6 recordings of 3 people' "$work/out" || fail "the report is not as expected: $(cat "$work/out")"
[ "$(wc -l < "$work/a/RECORDS")" = 6 ] || fail "RECORDS does not list 6"
[ "$(head -1 "$work/a/labels.csv")" = record,subject,age,sex,rhythm ] || fail "labels.csv has another header"
grep -q '^s00000_0,s00000,[0-9]*,[FM],sinus$' "$work/a/labels.csv" || fail "the first recording is not sinus"

# The same seed gives the same bytes, whatever the number of people; another seed does not.
"$sonde" synth ecg --out "$work/b" --subjects 2 --seconds 12 --seed 4 --json | grep -q '"recordings": *4' || fail "no JSON report"
cmp "$work/a/s00001_1.dat" "$work/b/s00001_1.dat" && cmp "$work/a/s00001_1.hea" "$work/b/s00001_1.hea"
"$sonde" synth ecg --out "$work/c" --subjects 1 --seconds 12 --seed 5 --leads 1 > "$work/out"
if cmp -s "$work/a/s00000_0.dat" "$work/c/s00000_0.dat"; then fail "another seed gave the same data"; fi

# Nothing is overwritten; bad options are refused with status 2, and say why.
if "$sonde" synth ecg --out "$work/a" 2> "$work/err"; then fail "a folder with records was written to"; fi
grep -q RECORDS "$work/err" || fail "the refusal does not say why"
code=0; "$sonde" synth eggs --out "$work/d" 2> "$work/err" || code=$?
[ $code = 2 ] && grep -q eeg "$work/err" || fail "an unknown kind gave status $code"
code=0; "$sonde" synth ecg 2> "$work/err" || code=$?
[ $code = 2 ] && grep -q -- --out "$work/err" || fail "a missing --out gave status $code"
if "$sonde" synth ecg --out "$work/d" --leads 3 2> "$work/err"; then fail "3 leads were accepted"; fi
[ ! -e "$work/d" ] || fail "a refused cohort left a folder"

"$sonde" inspect --beats --leads "$work/a/s00000_0.hea" > "$work/out"
grep -q '^beats: .* on II' "$work/out" || fail "no beats on II"
grep -q '^  as tokens: [0-9]* whole beats a lead, at most [0-9]* in 10 s' "$work/out" || fail "no beat tokens: $(cat "$work/out")"
grep -q 'within 150 ms: sensitivity 1.0000, predictivity 1.0000' "$work/out" || fail "beats differ: $(grep within "$work/out")"
grep -q '^leads: 4 of' "$work/out" || fail "the leads were not compared"
"$sonde" inspect --beats --json "$work/a/s00000_0.hea" > "$work/out"
grep -q '"tolerance_s": *0.1' "$work/out" && grep -q '"onsets_s"' "$work/out" || fail "no beats in the JSON"
if "$sonde" inspect --beats --reference qrs "$work/a/s00000_0.hea" > "$work/out" 2> "$work/err"; then
  fail "a missing annotation file was not an error"
fi
