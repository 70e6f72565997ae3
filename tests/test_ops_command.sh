#!/usr/bin/env bash
# `sonde ops` and `sonde selftest`: output, JSON, exit status.
set -eu
sonde=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "$*"; exit 1; }
export OMP_WAIT_POLICY=passive

"$sonde" ops > "$scratch/ops"
grep -q '^linear .*ref$' "$scratch/ops" || fail "ops does not list linear"
"$sonde" ops --explain --op linear --isa portable > "$scratch/explain"
grep -q '^cpu, portable' "$scratch/explain" || fail "--isa has no effect"
grep -q 'vit_s/qkv .*f32 .*cpu' "$scratch/explain" || fail "--explain does not say who is chosen"
if "$sonde" ops --op linaer 2> "$scratch/err"; then fail "an unknown op passed"; fi
grep -q 'no such op' "$scratch/err" || fail "an unknown op is not named"
if "$sonde" ops --isa quantum 2> /dev/null; then fail "an unknown instruction set passed"; fi

"$sonde" selftest --op linear --threads 2 > "$scratch/selftest" || fail "selftest of linear failed"
grep -q ' 0 failed$' "$scratch/selftest" || fail "selftest does not end with its counts"
if "$sonde" selftest --op nothing 2> /dev/null; then fail "selftest of an unknown op passed"; fi
if "$sonde" selftest --threads -3 2> /dev/null; then fail "a negative number of threads passed"; fi
"$sonde" selftest --help > /dev/null

"$sonde" ops --explain --json > "$scratch/ops.json"
"$sonde" selftest --op conv --json > "$scratch/selftest.json"
if command -v python3 > /dev/null; then
  python3 - "$scratch" <<'PYTHON'
import json, sys
ops = json.load(open(sys.argv[1] + "/ops.json"))
assert ops["device"]["threads"] >= 1
names = [op["name"] for op in ops["ops"]]
assert "linear" in names and len(names) == len(set(names))
for op in ops["ops"]:
    assert op["implementations"][-1] == "ref", op
    assert op["calls"] and all(call["chosen"] in op["implementations"] for call in op["calls"]), op["name"]
test = json.load(open(sys.argv[1] + "/selftest.json"))
assert test["comparisons"] > 0 and test["failed"] == 0
assert all(0 <= r["worst_of_tolerance"] <= 1 for r in test["results"])
PYTHON
fi
echo "sonde ops and sonde selftest: ok"
