#!/usr/bin/env bash
# sonde finetune from the command line, from a path with a space in it: table, JSON, folders, interruption, refusals.
set -eu
sonde=$1
"$sonde" --help | grep -q '^  finetune ' || { echo "skipped: this build lacks finetune"; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/sonde finetune.XXXXXX"); trap 'rm -rf "$work"' EXIT
fail() { echo "$1"; exit 1; }
cd "$work"

"$sonde" synth ecg --out cohort --subjects 24 --seconds 9 --leads 1 --seed 3 > /dev/null
"$sonde" pretrain --preset ecg-tiny --data cohort --labels cohort/labels.csv --key record --subject subject --fold 0/2 --out run \
  --set train.steps=3 --set train.pack_tokens=640 --set model.width=32 --set model.heads=2 --set model.depth=2 \
  --set data.window=4s --set train.threads=1 2> /dev/null
tune() { "$sonde" finetune run --target sex --set finetune.steps=8 --set finetune.eval_every=4 --set train.threads=1 --draws 50 "$@"; }

tune --scratch --seeds 2 > table 2> log || fail "it failed: $(cat log)"
grep -q 'of the head new' log || fail "the weights are not counted: $(cat log)"
for line in 'finetuned, seed 0' 'finetuned, seed 1' 'scratch, seed 1' 'majority' 'finetuned - scratch' 'finetuned - majority'; do
  grep -q "^  $line" table || fail "the table lacks '$line': $(cat table)"
done
grep -q 'written: run/finetune/finetune.json' log || fail "it does not say where the table is"
[ -f run/finetune/finetune.json ] || fail "no finetune.json"
[ -f run/finetune/fold-0/scratch-seed-1/config.yaml ] || fail "no run folder"
[ "$(wc -l < run/finetune/fold-0/finetuned-seed-0/metrics.jsonl)" = 8 ] || fail "metrics.jsonl has not 8 lines"
grep -q '"val_auroc"' run/finetune/fold-0/finetuned-seed-0/metrics.jsonl || fail "no validation in metrics.jsonl"

# The same again is refused; --resume only scores, and gives the same table but for the time it took.
code=0; tune --scratch --seeds 2 > /dev/null 2> log || code=$?
[ $code = 2 ] && grep -q -- --resume log || fail "a folder with runs gave status $code: $(cat log)"
tune --scratch --seeds 2 --resume > again 2> log || fail "resume failed: $(cat log)"
cmp <(grep -v ' s$' table) <(grep -v ' s$' again) || fail "another table after --resume"
tune --json --out other > json 2> /dev/null
tune --json --out other --resume > both 2>&1
[ "$(tail -n 1 both)" = "written: other/finetune.json" ] || fail "standard error stands in the object: $(tail -n 3 both)"
grep -q '"probe": *"finetune"' json && grep -q '"encoder": *"majority"' json || fail "not the JSON of a table: $(head -c 400 json)"
grep -q '"encoder_sha256": *null' json || fail "an unknown hash is not null"
cmp json other/finetune.json || fail "standard output and finetune.json differ"

# In head mode the encoder's bytes are those of the run: the checkpoint states each tensor's SHA-256.
tune --mode head --out head > /dev/null 2>&1
for name in embed.patch.weight backbone.blocks.0.attn.qkv.weight backbone.blocks.1.mlp.fc2.bias backbone.norm.weight; do
  a=$(grep -o "\"$name\": *\"[0-9a-f]*\"" run/checkpoints/step-000000003/state.json | head -1)
  b=$(grep -o "\"$name\": *\"[0-9a-f]*\"" head/fold-0/finetuned-seed-0/checkpoints/step-000000008/state.json | head -1)
  [ -n "$a" ] && [ "$a" = "$b" ] || fail "$name moved: '$a', '$b'"
  c=$(grep -o "\"$name\": *\"[0-9a-f]*\"" other/fold-0/finetuned-seed-0/checkpoints/step-000000008/state.json | head -1)
  [ -n "$c" ] && [ "$a" != "$c" ] || fail "$name did not move where everything learns"
done

# A finetune.json of another hand is left as it is, and nothing is trained before that is known.
for text in '{"target": "mine"}' '{"probe": "linear", "engine_version": "1"}' 'notes' '{'; do
  rm -rf mine; mkdir mine; echo "$text" > mine/finetune.json
  code=0; tune --out mine > /dev/null 2> log || code=$?
  [ $code = 2 ] && grep -q 'mine/finetune.json: is there and is not the table of a fine-tuning' log || fail "a foreign finetune.json gave status $code: $(cat log)"
  [ "$(cat mine/finetune.json)" = "$text" ] && [ "$(ls mine)" = finetune.json ] || fail "mine/ was written to"
done

# Refusals say what, and have status 2.
refused() { # word, arguments
  local word=$1 code=0; shift
  "$sonde" finetune "$@" > /dev/null 2> log || code=$?
  [ $code = 2 ] && grep -q -- "$word" log || fail "status $code for: $* : $(cat log)"
}
refused 'no run'          --target sex
refused '--target'        run
refused 'finetune.lr'     run --target sex --set train.lr=1
refused 'sex'             run --target sax
refused 'one class'       run --target sex --classes F
refused 'multiclass'      run --target sex --task classes
refused 'head_then_full'  run --target sex --mode heads --out x
refused '--seeds'         run --target sex --seeds 0
"$sonde" finetune --settings | grep -q 'finetune.layer_decay' || fail "--settings does not list finetune.*"
"$sonde" finetune --help | grep -q -- --scratch || fail "--help does not list --scratch"
if "$sonde" finetune nowhere --target sex 2> log; then fail "a run that is not there was accepted"; fi
grep -q nowhere log || fail "the missing run is not named"
