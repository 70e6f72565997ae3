#!/usr/bin/env bash
# Data that cannot be used is counted, named, and stops a run when it is too much: flat recordings, unreadable ones, files
# that changed since the run began.
set -eu
sonde=$1
"$sonde" --help | grep -q '^  finetune ' || { echo "skipped: this build reads no recordings"; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/sonde lost.XXXXXX"); trap 'rm -rf "$work"' EXIT
fail() { echo "$1"; exit 1; }
cd "$work"

flat() { # folder, name: 30 s of zeros in I and II; a sum of zeros is the checksum 0
  printf '%s 2 100 3000\n%s.dat 16 200/mV 16 0 0 0 0 I\n%s.dat 16 200/mV 16 0 0 0 0 II\n' "$2" "$2" "$2" > "$1/$2.hea"
  head -c 12000 /dev/zero > "$1/$2.dat"
}
pretrain() { # folder, run, more
  local data=$1 run=$2; shift 2
  "$sonde" pretrain --preset ecg-tiny --data "$data" --subject recording --out "$run" --set train.pack_tokens=640 \
    --set model.width=32 --set model.depth=1 --set train.threads=1 "$@" > out 2> log
}

# Half of the recordings are flat: the run ends well, counts windows in metrics.jsonl and names a recording at the end.
"$sonde" synth ecg --out good --subjects 4 --seconds 30 --rate 100 > /dev/null
rm -f good/RECORDS # which would name all there is
cp -r good half
for i in 1 2 3 4; do flat half "flat$i"; done
pretrain half half_run --set train.steps=40 --json || fail "half flat: $(cat log)"
grep -q 'recordings without any usable window: 4, first flat1' log || fail "flat recordings vanish: $(cat log)"
grep -q 'rejected windows: [0-9]*, .*flat in every series' log || fail "rejected windows are not counted: $(cat log)"
tail -n 1 half_run/metrics.jsonl | grep -q '"rejected": *[1-9]' || fail "no count in metrics.jsonl: $(tail -n 1 half_run/metrics.jsonl)"
grep -q '"recordings_without_window": *4' out && grep -q '"rejected": *[1-9]' out || fail "not in the JSON: $(cat out)"

# All flat: an error soon, which says so and names one.
mkdir zero
for i in 1 2 3 4; do flat zero "flat$i"; done
if pretrain zero zero_run --set train.steps=500; then fail "a run on nothing but zeros ended well"; fi
grep -q 'flat or invalid (first flat1' log || fail "not told: $(cat log)"
[ "$(wc -l < zero_run/metrics.jsonl)" -lt 30 ] || fail "$(wc -l < zero_run/metrics.jsonl) steps on nothing"

# A probe of them says that there is no usable window, not that there is nothing to test on.
printf 'name,label\nflat1,a\nflat2,b\nflat3,a\nflat4,b\n' > zero/labels.csv
pretrain good good_run --set train.steps=2 || fail "good: $(cat log)"
if "$sonde" probe good_run --data zero --labels zero/labels.csv --key name --target label --subject recording --folds 2 \
  > out 2> log; then fail "a probe of zeros ended well"; fi
grep -q 'flat in every series\|no usable window' log || fail "a probe of zeros does not say why: $(cat log)"

# Unreadable recordings count towards the limit, and can be left out by name.
mkdir most
cp good/s*.hea good/s*.dat most/ 2> /dev/null || cp good/*.hea good/*.dat most/
n=$(ls most/*.hea | wc -l)
for i in 1 2 3 4 5 6 7 8 9; do echo 'x y' > "most/bad$i.hea"; done
if pretrain most most_run --set train.steps=2; then fail "most of it is unreadable, and it ended well"; fi
grep -q "9 of $((n + 9)) recordings cannot be read" log && grep -q 'data.exclude, or raise train.max_bad_share' log ||
  fail "not what to do: $(cat log)"
# Why is said whole, and as it is, not as a cell of the manifest.
mkdir named; cp good/s00000_0.* named/
for i in 1 2 3; do
  printf 'I,II\n1,2\n' > named/a_table_with_a_line_of_names_and_no_word_of_it_in_the_sidecar$i.csv
  echo '{"rate": 10, "channels": ["I", "II"], "kinds": ["ecg", "ecg"], "units": ["mV", "mV"]}' > named/a_table_with_a_line_of_names_and_no_word_of_it_in_the_sidecar$i.json
done
if pretrain named named_csv --set train.steps=2; then fail "names were read as numbers"; fi
grep -q 'set "header_lines" in the sidecar$' log || fail "the reason is cut or escaped: $(cat log)"
pretrain named named_csv --set train.steps=2 --set train.max_bad_share=0.9 || fail "the limit is not heeded: $(cat log)"
grep -q 'set "header_lines" in the sidecar)' log || fail "the warning escapes the reason: $(cat log)"
"$sonde" index named > out 2> log && grep -q 'set "header_lines" in the sidecar$' out || fail "index escapes the reason: $(cat out)"
"$sonde" doctor named > out 2> log || true
grep -q 'set "header_lines" in the' out || fail "doctor escapes the reason: $(cat out)"
pretrain most most_run --set train.steps=2 --set train.max_bad_share=0.6 --json || fail "the limit is not heeded: $(cat log)"
grep -q '"recordings_unreadable": *9,' out && grep -q '"recordings_quarantined": *0,' out || fail "not counted in the JSON: $(cat out)"
grep -q 'recordings left out, .*: 9, first bad1.hea: ' log || fail "not counted at the end: $(cat log)"
grep -q 'cannot be read and are left out' log || fail "no warning below the limit: $(cat log)"
pretrain most named_run --set train.steps=2 --set data.exclude=bad1,bad2,bad3,bad4,bad5,bad6,bad7,bad8,bad9 ||
  fail "unreadable recordings cannot be excluded: $(cat log)"

# A lead that is asked for and is not there is counted; one that no recording has is refused.
mkdir mixed
"$sonde" synth ecg --out mixed/twelve --subjects 2 --seconds 12 > /dev/null
"$sonde" synth ecg --out mixed/one --subjects 3 --recordings 1 --seconds 12 --leads 1 > /dev/null
pretrain mixed lack_run --set train.steps=2 --set ecg.leads=II,V1 || fail "leads that some have are refused: $(cat log)"
grep -q 'warning: ecg.leads: 3 of 7 recordings lack V1 (first one/' log || fail "recordings without a lead are not counted: $(cat log)"
! grep -q 'lack II' log || fail "a lead that all have is missed: $(cat log)"
if pretrain mixed/one none_run --set train.steps=2 --set ecg.leads=II,V1; then fail "trained without a lead that was asked for"; fi
grep -q 'ecg.leads: V1 is in none of the 3 recordings' log || fail "the lead is not named: $(cat log)"
"$sonde" synth eeg --out caps --subjects 2 --recordings 1 --seconds 12 --headset 19 > /dev/null
eeg() {
  "$sonde" pretrain --preset eeg-tiny --data caps --subject recording --out eeg_run --set train.pack_tokens=640 --set model.width=32 \
    --set model.depth=1 --set train.threads=1 --set train.steps=2 "$@" > out 2> log
}
if eeg --set eeg.channels=Cz,Oz; then fail "trained without a channel that was asked for"; fi
grep -q 'eeg.channels: Oz is in none of the 2 recordings' log || fail "the channel is not named: $(cat log)"
eeg --set eeg.channels=Cz,t3 || fail "a channel under its other name is not found: $(cat log)"
! grep -q 'lack' log || fail "a channel is missed under its other name: $(cat log)"

# Too many in training: quarantine.tsv is there, the message says what to do, and the folder can be used again.
cp -r good late
for f in late/*.dat; do printf 'xx' | dd of="$f" bs=1 seek=3000 conv=notrunc 2> /dev/null; done
if pretrain late late_run --set train.steps=2; then fail "checksums that are wrong in all files, and it ended well"; fi
grep -q 'data.exclude or raise train.max_bad_share' log || fail "not what to do: $(cat log)"
[ "$(wc -l < late_run/quarantine.tsv)" -ge 2 ] || fail "no quarantine.tsv"
pretrain good late_run --set train.steps=2 || fail "a folder without a checkpoint is not taken again: $(cat log)"

# What is odd about a recording is said once, also where it fails and is opened for one window after another.
mkdir odd
first=$(ls late/*.hea | head -n 1)
cp "${first%.hea}".* odd/
sed -i 's/aVR$/aVx/; s/aVL$/aVR/; s/aVx$/aVL/' odd/*.hea
pretrain odd odd_run --set train.steps=4 || true
[ "$(grep -c 'recorded limb leads differ' log)" = 1 ] || fail "said $(grep -c 'limb leads differ' log) times: $(cat log)"

# doctor says so beforehand, where all of the signal is read; and which recordings are shorter than a window.
"$sonde" synth ecg --out brief --subjects 1 --recordings 2 --seconds 6 > /dev/null
code=0; "$sonde" doctor late --signal all > out 2> log || code=$?
[ $code = 1 ] && grep -q '^  checksum  *8 ' out || fail "doctor misses checksums: $(cat out log)"
"$sonde" doctor brief > out 2> log && grep -q '^  short  *2 ' out || fail "doctor misses what is too short: $(cat out log)"

# A resumed run sees the same recordings, or none: also from another folder, and not after a change.
pretrain good goes_on --set train.steps=2 || fail "$(cat log)"
mkdir elsewhere
(cd elsewhere && "$sonde" pretrain --resume ../goes_on --set train.steps=3 > /dev/null 2> ../log) ||
  fail "not resumed from another folder: $(cat log)"
first=$(ls good/*.dat | head -n 1)
cp "$first" kept; printf 'x' | dd of="$first" bs=1 seek=100 conv=notrunc 2> /dev/null
touch -d '2001-01-01' "$first"
if "$sonde" pretrain --resume goes_on --set train.steps=4 > /dev/null 2> log; then fail "changed data are gone on with"; fi
grep -q "data have changed since this run began: $(basename "${first%.dat}")" log || fail "the file is not named: $(cat log)"
! grep -q "sonde index\|;\." log && grep -q " bytes). A resumed run must see the same recordings" log || fail "the message is cut: $(cat log)"
cp kept "$first"
"$sonde" pretrain --resume goes_on --set train.steps=4 > /dev/null 2> log || fail "restored data are refused: $(cat log)"

# And the same labels, wherever they lie: a labels file of other content is refused by name, as is participants.tsv where it is read.
synth_labels() { echo 'record,who,part'; (cd good && ls *.hea) | sed 's/\.hea$//' | awk -v part="$1" '{ print $1 "," $1 "," (NR > 6 ? "test" : part) }'; }
synth_labels train > labels.csv
pretrain good labelled --set train.steps=2 --labels labels.csv --key record --split part || fail "labels: $(cat log)"
grep -q ' data.labels labels.csv$' labelled/labels.sha256 || fail "labels.sha256: $(cat labelled/labels.sha256)"
cp labels.csv kept.csv; synth_labels Train > labels.csv
if "$sonde" pretrain --resume labelled --set train.steps=4 > /dev/null 2> log; then fail "changed labels are gone on with"; fi
grep -q 'labels have changed since this run began: labels.csv holds something else' log || fail "the labels are not named: $(cat log)"
"$sonde" pretrain --resume labelled --labels kept.csv --set train.checkpoint_every=1 > /dev/null 2> log || fail "equal labels elsewhere are refused: $(cat log)"
if grep -q 'marked so' log; then fail "equal labels elsewhere mark the run: $(cat log)"; fi
mv good moved
if "$sonde" pretrain --resume good_run --set train.steps=5 > /dev/null 2> log; then fail "data are gone, and it went on"; fi
grep -q "neither here nor in '$PWD'\|neither here nor in '/" log || fail "not both places: $(cat log)"
