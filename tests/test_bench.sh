#!/usr/bin/env bash
# sonde bench: rows by name, their JSON, the products' share, no primitive after step 10, and errors.
set -eu
sonde=$1
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
fail() { echo "$*"; exit 1; }

"$sonde" bench --list > "$work/list"
grep -q '^train_step/vit_s/1d/bf16 ' "$work/list" || fail "the list lacks a row"

"$sonde" bench --json --seconds 0.01 --tokens 640 --threads 2 train_step/vit_t/1d/f32 > "$work/step.json"
field() { sed -n "s/^ *\"$1\": *\([^,]*\),*$/\1/p" "$work/step.json"; }
for key in ms tok_per_s model_gflops gemm_share peak_mib; do
  awk -v x="$(field $key)" -v key=$key 'BEGIN { if (!(x > 0)) { print key ": " x; exit 1 } }' || fail "a figure is missing"
done
[ "$(field primitives_after_10)" = 0 ] || fail "primitives were made after step 10: $(field primitives_after_10)"
[ "$(field threads)" = 2 ] || fail "threads: $(field threads)"

"$sonde" bench --json --seconds 0.01 'loader/synthetic' > "$work/loader.json"
grep -q '"samples_per_s": [0-9]' "$work/loader.json" || fail "the loader's row has no throughput"

if "$sonde" bench train_stepp 2> "$work/err"; then fail "a row that is not there was accepted"; fi
grep -q "no row is named 'train_stepp'" "$work/err" || fail "the error does not name the row: $(cat "$work/err")"
# A row that fails: a nonzero status, and no line in the results.
if "$sonde" bench --json --seconds 0.01 --tokens 10 train_step/vit_t/1d/f32 > "$work/bad.json" 2> "$work/err"; then
  fail "a step smaller than a sample was accepted"
fi
grep -q '"ms"' "$work/bad.json" && fail "a failed row stands in the results"
grep -q 'train_step/vit_t/1d/f32' "$work/err" || fail "the error does not name the row"
echo "bench: rows, JSON and errors"
