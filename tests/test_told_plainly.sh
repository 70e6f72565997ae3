#!/usr/bin/env bash
# What a person is told: options that would change nothing are refused, a unit must be one, a file that is no recording is
# explained, a probe's result is not written over unasked, and too few people have no interval.
set -eu
sonde=$1
"$sonde" --help | grep -q '^  finetune ' || { echo "skipped: this build lacks finetune"; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/sonde plainly.XXXXXX"); trap 'rm -rf "$work"' EXIT
fail() { echo "$1"; cat log; exit 1; }
cd "$work"
says() { # STATUS WORDS COMMAND...
  local status=$1 words=$2 code=0; shift 2
  "$@" > out 2> log || code=$?
  [ "$code" = "$status" ] || fail "status $code, not $status: $*"
  grep -q -- "$words" log || fail "no '$words' in the message of: $*"
}
"$sonde" synth ecg --out cohort --subjects 4 --recordings 2 --seconds 12 --leads 1 > /dev/null
record=$(ls cohort/*.hea | head -n 1)

says 2 '--reference atr: only matters with --beats' "$sonde" inspect "$record" --reference atr
says 2 '--assume-rate 100: only EDF' "$sonde" inspect "$record" --assume-rate 100
says 2 "'parsec': no unit" "$sonde" inspect "$record" --assume-unit parsec
says 2 "'parsec': no unit" "$sonde" index cohort --assume-unit parsec
says 2 "'parsec': no unit" "$sonde" doctor cohort --assume-unit parsec
says 2 '--signal -5: expected seconds' "$sonde" doctor cohort --signal -5
says 2 '--tokens: matters to rows of train_step' "$sonde" bench loader/synthetic --tokens 640
says 2 '--file: matters to rows of read' "$sonde" bench loader/synthetic --file x
says 2 '--cpu-time: matters to rows of' "$sonde" bench loader/synthetic --cpu-time
says 2 'leave out --seconds' "$sonde" bench loader/synthetic --quick --seconds 1
"$sonde" bench loader/synthetic --quick > out 2> log || fail "bench --quick failed"
grep -q ' threads; ' out && grep -q '^ms: ' out || fail "no machine and no key of columns: $(cat out)"

# A unit that is assumed is named as it was given, not as it is shown.
printf '1\n2\n' > raw.csv
echo '{"rate": 10, "channels": ["I"], "kinds": ["ecg"]}' > raw.json
"$sonde" inspect raw.csv --assume-unit uV > out 2> log || fail "inspect failed"
grep -q 'no unit, uV is assumed' out || fail "another unit is told than was assumed: $(cat out)"

# Files that are none, and labels without a line.
printf 'x' > "${record%.hea}.atrx"
says 1 "belongs to the record" "$sonde" inspect "${record%.hea}.atrx"
mkdir below
(cd below && "$sonde" inspect ../none.edf > out 2> ../log) && fail "a file that is not there"
grep -q "inspect: ../none.edf: cannot be opened" log || fail "another path is told than was given"
"$sonde" synth ecg --out one --subjects 1 --recordings 1 --seconds 12 --leads 1 > /dev/null
"$sonde" index one > out 2> log && grep -q '1 recording,' out || fail "a plural of one: $(cat out)"
printf 'record,subject\n' > empty.csv
pretrain=("$sonde" pretrain --preset ecg-tiny --data cohort --set model.width=16 --set model.heads=2 --set model.depth=1
  --set mae.decoder_width=16 --set mae.decoder_heads=1 --set train.pack_tokens=256 --set train.steps=2 --set train.threads=1)
says 2 'a header and no line below it' "${pretrain[@]}" --labels empty.csv --key record --subject subject --fold 0/2 --out none
says 2 "fold '0-5'" "${pretrain[@]}" --subject recording --fold 0-5 --out none2
! grep -q 'recordings' log || fail "the fold is looked at after the data"

# Probes of four people: no interval; other options do not write over a result.
labels=(--labels cohort/labels.csv --key record --subject subject)
for i in 0 1; do "${pretrain[@]}" "${labels[@]}" --fold $i/2 --out run$i 2> log || fail "no run"; done
probe=("$sonde" probe run0 run1 --target age --task regression --draws 20 --seeds 1)
"${probe[@]}" > out 2> log || fail "the probe failed"
grep -q 'no intervals: 4 test people' out || fail "an interval of four people: $(cat out)"
grep -q '^  mean  *-  ' out || fail "the row of a number's mean is called otherwise: $(cat out)"
"${probe[@]}" > out 2> log || fail "the same probe again is refused"
says 2 'is there from other options' "${probe[@]}" --pool cls
grep -q 'write over it; now: --pool cls$' log || fail "not the option that differs alone"
says 2 'write over it; then: --draws 20; now: --draws 21$' "${probe[@]:0:8}" --draws 21 --seeds 1
cp cohort/labels.csv kept.csv # the labels are what they say, not what they are called
sed -i 's/,M,/,m,/' cohort/labels.csv
says 2 'write over it; the labels file has changed$' "${probe[@]}"
cp kept.csv cohort/labels.csv
"${probe[@]}" > out 2> log || fail "the same probe of the same labels is refused"
"${probe[@]}" --seed 1 --force > out 2> log || fail "--force is refused"
says 2 'is there from other options' "${probe[@]}"
"${probe[@]}" --name other > out 2> log || fail "another name is refused"
cp -r run1 run2
probe[3]=run2
says 2 'is there from other options' "${probe[@]}" --seed 1
grep -q 'of run0 run1' log || fail "the other runs are not named"
echo "told plainly"
