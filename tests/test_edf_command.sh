#!/usr/bin/env bash
# `sonde inspect` and `sonde index` on small EDF files made by hand (tests/corpus/edf), plain and gzipped.
#   tests/test_edf_command.sh SONDE
set -u
sonde=$(realpath "$1")
corpus=$(cd "$(dirname "$0")/corpus/edf" && pwd)
if ! "$sonde" --help | grep -q '^  inspect '; then
  echo "skipped: this build has no 'sonde inspect'"
  exit 77
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for name in plain plus_c plus_d alone unknown_count zero_duration odd; do cp "$corpus/$name" "$dir/$name.edf"; done
cp "$corpus/bdf" "$dir/bdf.bdf"
cp "$corpus/packed.gz" "$dir/packed.edf.gz"
checks=0 failed=0
fail() { echo "FAILED: $1"; failed=1; }
# expect STATUS PATTERN ARGUMENTS...: exit status, and a line of the output (both streams) that matches.
expect() {
  local status=$1 pattern=$2 out code
  shift 2
  out=$("$sonde" "$@" 2>&1)
  code=$?
  checks=$((checks + 1))
  if [ "$code" != "$status" ]; then fail "exit status $code, expected $status: $*: $out"; fi
  if ! grep -q -- "$pattern" <<<"$out"; then fail "no '$pattern' in: $* : $out"; fi
}
cd "$dir" || exit 1
expect 0 'rate       2 to 4 Hz' inspect plain.edf
expect 0 '"subject": {' inspect --json plain.edf
expect 0 '(no id), 50 years, F' inspect plain.edf # "id" in plain EDF may be a name
expect 0 'EDF+D, eeg' inspect plus_d.edf
expect 0 '7.000 s  +0.500 s' inspect plus_d.edf
expect 0 '"duration_s": 0.5' inspect --json plus_c.edf
expect 0 'no signal: annotations alone' inspect alone.edf
expect 0 '+90.000 s  Größe' inspect alone.edf
expect 0 'record_count' inspect unknown_count.edf
expect 1 'assume-rate' inspect zero_duration.edf
expect 0 'rate       8 Hz' inspect zero_duration.edf --assume-rate 8
expect 2 'assume-rate' inspect zero_duration.edf --assume-rate fast
expect 1 'no calibration' inspect odd.edf --stats
expect 0 'trigger_at_start' inspect bdf.bdf --stats
expect 1 'trigger channel' inspect bdf.bdf --values 0:2 --channel Status
expect 0 '5 annotations' inspect packed.edf.gz
for word in name MAY 1951; do
  if "$sonde" inspect --json --annotations --dates plain.edf | grep -v '"name"\|"raw_name"' | grep -q "$word"; then
    fail "the patient's $word is shown"
  fi
done
expect 0 '7 recordings' index "$dir" --out "$dir/m.tsv"
grep -q 'alone.edf.*unsupported.*annotations and no signal' "$dir/m.tsv" || fail "the manifest: $(cat "$dir/m.tsv")"
grep -q 'zero_duration.edf.*unsupported.*record duration' "$dir/m.tsv" || fail "no reason for zero_duration.edf"
if [ "$checks" -lt 10 ]; then fail "only $checks checks"; fi
echo "$checks checks"
exit $failed
