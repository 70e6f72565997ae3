#!/usr/bin/env bash
# A table or an array whose sidecar is broken is a recording that cannot be read, in every command; tables of other kinds are not.
set -eu
sonde=$1
"$sonde" --help | grep -q '^  finetune ' || { echo "skipped: this build reads no recordings"; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/sonde sidecars.XXXXXX"); trap 'rm -rf "$work"' EXIT
fail() { echo "$1"; exit 1; }
cd "$work"

table() { # name
  awk 'BEGIN { for (i = 0; i < 3000; i++) printf "%g,%g\n", 0.1 * sin(i / 9), 0.2 * cos(i / 17) + 0.05 * sin(i * i) }' > "$1"
}
mkdir set
for i in 1 2 3 4; do
  table "set/good$i.csv"
  echo '{"rate": 100, "channels": ["I", "II"], "units": "mV", "kinds": ["ecg", "ecg"]}' > "set/good$i.json"
done
code=0; "$sonde" index set --out sound.tsv > out 2> log || code=$?
[ $code = 0 ] || fail "sound tables: $(cat out log)"

# Each of these is a line with its reason, and inspect says the same.
bad() { # name, sidecar, words
  table "set/$1"
  printf '%b' "$2" > "set/${1%.*}.json"
  "$sonde" inspect "set/$1" > out 2> log && fail "$1 is read"
  grep -qF -- "$3" log || fail "inspect $1 does not say '$3': $(cat log)"
  "$sonde" index set --out all.tsv > out 2> log || fail "index: $(cat out log)"
  grep -F -- "$1" all.tsv | sed 's/%22/"/g' | grep -qF -- "$3" || fail "no line of $1 with '$3': $(cut -c 1-200 all.tsv)"
}
bad comma.csv '{"rate": 100,\n "channels": ["I", "II"],\n}\n' 'comma.json: line 3, byte 40'
bad list.csv '[]' 'expected an object with "rate" and "channels"'
bad typo.tsv '{"rte": 100, "channels": ["I", "II"]}' 'did you mean "rate"'
bad without.txt '{"channels": ["I", "II"]}' '"rate" is absent'
bad empty.csv '{}' '"rate" is absent'
bad other.csv '{"sampling": 100, "leads": ["I", "II"]}' 'unknown key "sampling"'
bad cut.csv '' 'cut.json: line 1, byte 0'
printf '\223NUMPY\001\000' > set/array.npy
echo '{"rate": 100, "channels": ["I"], "axes": "time"' > set/array.json
"$sonde" inspect set/array.npy > out 2> log && fail "array.npy is read"
grep -q 'array.json: line ' log || fail "inspect array.npy: $(cat log)"

mkdir alone; cp set/comma.* alone/
code=0; "$sonde" index alone > out 2> log || code=$?
[ $code = 1 ] && grep -q 'no recording can be used' log || fail "index of one broken sidecar alone ends with $code: $(cat out log)"
code=0; "$sonde" doctor set --signal 0 > out 2> log || code=$?
[ $code = 1 ] && grep -q '^  unreadable  *8 ' out || fail "doctor finds no fault: $(cat out log)"

pretrain() {
  "$sonde" pretrain --preset ecg-tiny --data set --subject recording --out run --set train.pack_tokens=640 --set train.steps=2 \
    --set model.width=32 --set model.depth=1 --set train.threads=1 "$@" > out 2> log
}
if pretrain; then fail "most sidecars are broken, and it ended well"; fi
grep -q '8 of 12 recordings cannot be read' log || fail "pretrain: $(cat log)"
pretrain --set train.max_bad_share=0.7 || fail "the limit is not heeded: $(cat log)"

# Tables of another kind: a dictionary of columns, rows once more, BIDS's own however broken, what stands beside an EDF.
"$sonde" synth eeg --out set2 --headset 19 --subjects 1 --recordings 1 --seconds 20 > /dev/null
mkdir plain
cp "$(find set2 -name '*_eeg.edf' | head -n 1)" plain/rec.edf
cp set/good1.* plain/
echo 'onset,code' > plain/rec.csv; echo '{"device": "x"}' > plain/rec.json
echo 'name,age' > plain/labels.csv; echo '{"name": {"description": "the recording"}, "age": {"units": "years"}}' > plain/labels.json
echo 'name,age' > plain/rows.csv; echo '[{"name": "a", "age": 1}]' > plain/rows.json
printf 'participant_id\tage\n' > plain/participants.tsv; echo '{"age":' > plain/participants.json
printf 'onset\tduration\n' > plain/a_events.tsv; echo '{"onset": 1}' > plain/a_events.json
echo 'name,age' > plain/alone.csv
code=0; "$sonde" index plain --out plain.tsv > out 2> log || code=$?
[ $code = 0 ] && [ "$(grep -vc '^#\|^path' plain.tsv)" = 2 ] || fail "tables of other kinds: $(cat out log; cut -c 1-150 plain.tsv)"
