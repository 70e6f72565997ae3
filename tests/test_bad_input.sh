#!/usr/bin/env bash
# What a hostile or unlucky surrounding may do to the command: closed streams, a full or wrong output, damaged checkpoints,
# two processes in one folder, too few threads, descriptors or bytes. Each ends in an error with a message and a status that
# is not 0, nothing is lost, and no number is wrong. From a path with a space in it.
set -u
sonde=$1
"$sonde" --help | grep -q '^  synth ' || { echo "skipped: this build lacks synth"; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/sonde bad.XXXXXX"); trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
checks=0
fail() { echo "$1"; [ ! -s err ] || cat err; exit 1; }
# refuses STATUS PATTERN COMMAND...: that exit status, and a message that says so.
refuses() {
  local status=$1 pattern=$2 code=0
  shift 2
  "$@" > out 2> err || code=$?
  [ "$code" = "$status" ] || fail "expected status $status, found $code: $*"
  grep -q -- "$pattern" err || fail "no '$pattern' in the message of: $*"
  checks=$((checks + 1))
}
holds() { # FILE TEXT: its content is that
  [ "$(cat "$1")" = "$2" ] || fail "$1 was changed"
  checks=$((checks + 1))
}

"$sonde" synth ecg --out cohort --subjects 4 --recordings 1 --seconds 12 --leads 1 > out || fail "no cohort"
pretrain=("$sonde" pretrain --preset ecg-tiny --data cohort --set model.width=16 --set model.heads=2 --set model.depth=1
  --set mae.decoder_width=16 --set mae.decoder_heads=1 --set mae.decoder_depth=1 --set train.pack_tokens=256
  --set train.steps=4 --set train.threads=2 --set train.loader_threads=1)
"${pretrain[@]}" --out run 2> err || fail "the run failed"

# Standard output that cannot be written is an error of every command; one that is closed takes no file's place.
for arguments in "index cohort" "index cohort --json" "index --help" "ops" "pretrain --settings" "pretrain --help" \
                 "inspect cohort/s00000_0.hea" "--help" "--version"; do
  code=0; "$sonde" $arguments > /dev/full 2> err || code=$?
  [ "$code" = 1 ] && grep -q 'standard output could not be written' err || fail "status $code with a full output: $arguments"
done
"${pretrain[@]}" --out closed 0<&- 1>&- 2>&- || fail "closed streams stopped a run"
cmp run/metrics.jsonl closed/metrics.jsonl || fail "metrics differ when the streams are closed"
if grep -rq 'tok/s' closed; then fail "a log line ended in a file of the run"; fi

# Only what is ours is overwritten: no FIFO, folder, table or recording.
mkfifo pipe
refuses 1 'expected a new name or a regular file' "$sonde" index cohort --out pipe
[ -p pipe ] || fail "a FIFO was replaced"
refuses 1 'found a folder' "$sonde" index cohort --out cohort
echo mine > table.csv; cp table.csv table.tsv.cache; mkdir other.cache; echo mine > other.cache/file
refuses 2 'not a manifest' "$sonde" index cohort --out table.csv; holds table.csv mine
refuses 2 'not an index cache' "$sonde" index cohort --out table.tsv; holds table.tsv.cache mine
refuses 1 'found a folder' "$sonde" index cohort --out other --fresh; holds other.cache/file mine
refuses 2 'not a prepared store' "$sonde" index cohort --prepare table.csv; holds table.csv mine
"$sonde" index cohort --out again.tsv > out && "$sonde" index cohort --out again.tsv --fresh > out || fail "a manifest is not made anew"
mkdir taken; echo mine > taken/split.tsv
refuses 2 'not a split' "${pretrain[@]}" --out taken; holds taken/split.tsv mine
echo mine > taken/metrics.jsonl; rm taken/split.tsv
refuses 2 "'metrics.jsonl' is in it" "${pretrain[@]}" --out taken; holds taken/metrics.jsonl mine
refuses 2 'already holds a run' "${pretrain[@]}" --out run
mkdir own; echo 'train: {steps: 4}' > own/config.yaml
refuses 2 "not a run's configuration" "${pretrain[@]}" --out own; holds own/config.yaml 'train: {steps: 4}'

cp table.csv features.tsv; cp table.csv features.h5
refuses 2 'not the table of an embedding' "$sonde" embed run --out features.npy; holds features.tsv mine
refuses 2 'not an embedding' "$sonde" embed run --out features.h5; holds features.h5 mine
"$sonde" embed run --out fresh.npy > out 2> err && "$sonde" embed run --out fresh.npy > out 2> err || fail "features are not made anew"
refuses 2 'can only be joined over the folds' "$sonde" probe run closed --data cohort --subject recording --target header:Sex --split sex:M:F

# A start that failed before training does not stand in the way of the next.
refuses 2 'multiple of the number of heads' "${pretrain[@]}" --set model.heads=3 --out second
"${pretrain[@]}" --out second 2> err || fail "the next start failed"

# Damaged checkpoints: the run does not begin anew over what it has.
damage() { rm -rf hurt; cp -r run hurt; metrics=$(sha256sum < hurt/metrics.jsonl); }
untouched() { [ "$(sha256sum < hurt/metrics.jsonl)" = "$metrics" ] || fail "metrics of a damaged run were cut"; checks=$((checks + 1)); }
last=checkpoints/step-000000004
damage; truncate -s 100 "hurt/$last/model.safetensors"
refuses 1 'none of its 1 checkpoints is whole' "$sonde" pretrain --resume hurt; untouched
damage; rm "hurt/$last/state.json"
refuses 1 'none of its 1 checkpoints is whole' "$sonde" pretrain --resume hurt; untouched
damage; sed -i 's/"position": [0-9]*/"position": 99/' "hurt/$last/state.json"
refuses 1 'SHA-256' "$sonde" pretrain --resume hurt; untouched
damage; mv "hurt/$last" hurt/checkpoints/step-000000003
refuses 1 'it is of step 4' "$sonde" pretrain --resume hurt; untouched
damage; rm hurt/metrics.jsonl
refuses 1 'metrics.jsonl: is missing' "$sonde" pretrain --resume hurt --set train.steps=6
refuses 2 'leave out --out' "$sonde" pretrain --resume run --out elsewhere
refuses 2 '4 steps are done already' "$sonde" pretrain --resume run --set train.steps=3
refuses 1 'no config.yaml' "$sonde" pretrain --resume cohort

# Other settings on resume: said, marked, and config.yaml follows. A setting of speed alone changes nothing.
damage; "$sonde" pretrain --resume hurt --set train.steps=6 --set train.loader_threads=2 2> err || fail "no longer run"
grep -q 'warning: hurt: resumed with train.steps: 4, now 6' err && grep -q 'resumed inexactly' err || fail "a longer run is not marked"
grep -q '"steps": 6' hurt/config.yaml || fail "config.yaml still has the old steps"
grep -q '"inexact_resume": true' hurt/checkpoints/step-000000006/state.json || fail "the checkpoint is not marked"

# Doing nothing is an error.
refuses 2 'train.lr 0' "${pretrain[@]}" --set train.lr=0 --out nothing
refuses 2 'no unit of what ecg reads' "${pretrain[@]}" --set data.assume_unit=parsec --out nothing
refuses 2 'empty name' "$sonde" index ''

# One process to a folder.
"${pretrain[@]}" --set train.steps=1000000 --out busy 2> busy.log & busy=$!
for i in $(seq 200); do [ ! -s busy/metrics.jsonl ] || break; sleep 0.1; done
refuses 1 'another process is training' "$sonde" pretrain --resume busy
kill -HUP $busy; code=0; wait $busy || code=$?
[ "$code" = 129 ] && ls busy/checkpoints | grep -q step- || fail "SIGHUP: status $code, or nothing saved"

# A log whose reader leaves does not end the run.
{ "${pretrain[@]}" --out piped 2>&1; echo $? > code; } | head -n 1 > out
for i in $(seq 100); do [ ! -s code ] || break; sleep 0.1; done
[ "$(cat code)" = 0 ] || fail "the run ended with its log's reader: $(cat code)"

# Fewer threads than asked for: the same numbers, from the threads there are.
OMP_THREAD_LIMIT=1 "${pretrain[@]}" --out limited 2> err || fail "OMP_THREAD_LIMIT=1"
grep -q '1 compute threads, not 2' err || fail "fewer threads were not said"
"${pretrain[@]}" --set train.threads=1 --out one 2> err || fail "one thread"
cmp limited/metrics.jsonl one/metrics.jsonl || fail "OMP_THREAD_LIMIT=1 differs from one thread"
OMP_DYNAMIC=true "${pretrain[@]}" --out dynamic 2> err || fail "OMP_DYNAMIC"
cmp run/metrics.jsonl dynamic/metrics.jsonl || fail "OMP_DYNAMIC gives other numbers"

# Running out of descriptors or of the allowed file size is no fault of a recording.
code=0; (ulimit -n 8; exec "${pretrain[@]}" --out few 2> err) || code=$?
[ "$code" = 1 ] && grep -q 'ulimit -n' err || fail "too few descriptors: status $code"
[ ! -e few/quarantine.tsv ] || [ "$(wc -l < few/quarantine.tsv)" = 1 ] || fail "a recording was put down for too few descriptors"
code=0; (ulimit -f 8; exec "${pretrain[@]}" --out large 2> err) || code=$?
[ "$code" = 1 ] && grep -q 'io error' err || fail "a limit on file sizes: status $code"

# Too little address space ends in an error of ours, wherever it runs out (libraries that generate code crash there). A
# build with a sanitizer takes terabytes of it and cannot be asked.
if ! grep -q __asan_init "$sonde"; then
  for kib in 120000 150000 170000 185000 200000 220000 240000 260000; do
    code=0
    (ulimit -v $kib; exec "$sonde" pretrain --preset synthetic-tiny --set train.steps=2 --set train.threads=2 \
      --set train.dtype=f32 --out "space$kib" 2> err) || code=$?
    [ "$code" -le 1 ] && [ -s err ] || fail "with ulimit -v $kib: status $code"
    checks=$((checks + 1))
  done
fi

# No word of a header where a number belongs, nor a control character of a name, reaches messages and manifests.
mkdir names; sed 's/1000(0)/JOHNPUBLIC/' cohort/s00000_0.hea > names/a.hea; cp cohort/s00000_0.dat names/
printf 'x' > "names/$(printf 'b\033[2J\nc').hea"
refuses 1 'no recording can be used' "$sonde" index names --out names.tsv
if grep -q JOHNPUBLIC out err names.tsv; then fail "a word of a header reached a message"; fi
if LC_ALL=C grep -q "$(printf '\033')" out err names.tsv; then fail "a control character reached a message"; fi
refuses 1 'gain: expected a number, found a text of 10 bytes' "$sonde" inspect names/a.hea
sed 's/1000(0)/1e-320/' cohort/s00000_0.hea > cohort/tiny.hea
refuses 1 'gain: expected' "$sonde" inspect cohort/tiny.hea
[ "$checks" -ge 42 ] || fail "only $checks checks were made"
echo "$checks checks"
