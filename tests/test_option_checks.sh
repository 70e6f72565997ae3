#!/usr/bin/env bash
# Options and settings that would change nothing, or could not be meant so, are refused with a message that says what to do;
# none is ignored without a word. A run that begins from another one inherits whom that one saw.
set -u
sonde=$1
"$sonde" --help | grep -q '^  finetune ' || { echo "skipped: this build lacks finetune"; exit 77; }
work=$(mktemp -d "${TMPDIR:-/tmp}/sonde options.XXXXXX"); trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
checks=0
fail() { echo "$1"; [ ! -s err ] || tail -5 err; exit 1; }
refuses() { # STATUS PATTERN COMMAND...
  local status=$1 pattern=$2 code=0
  shift 2
  "$@" > out 2> err || code=$?
  [ "$code" = "$status" ] || fail "expected status $status, found $code: $*"
  grep -q -- "$pattern" err || fail "no '$pattern' in the message of: $*"
  checks=$((checks + 1))
}

"$sonde" synth ecg --out cohort --subjects 8 --recordings 1 --seconds 12 --leads 1 > /dev/null || fail "no cohort"
tiny=(--set model.width=16 --set model.heads=2 --set model.depth=1 --set mae.decoder_width=16 --set mae.decoder_heads=1
  --set train.pack_tokens=256 --set train.steps=2 --set train.threads=1)
labels=cohort/labels.csv
people=(--labels "$labels" --key record --subject subject)
"$sonde" pretrain --preset ecg-tiny --data cohort "${people[@]}" --fold 0/2 "${tiny[@]}" --out run 2> err || fail "no run"
"$sonde" pretrain --preset ecg-tiny --data cohort "${tiny[@]}" --out whole 2> err || fail "no run on everything"
probe=("$sonde" probe run --target sex)
"${probe[@]}" --draws 20 --seeds 1 > out 2> err || fail "the probe failed"

# probe: what does not apply, and numbers that cannot be.
refuses 2 '--folds 3: the runs. own folds' "${probe[@]}" --folds 3
refuses 2 '--window 2: the target' "${probe[@]}" --window 2
refuses 2 '--context 10' "${probe[@]}" --context 10
refuses 2 '--context 0.5' "$sonde" probe whole --target annotation:aami --context 0.5
refuses 2 '--seeds' "${probe[@]}" --seeds 0
refuses 2 '--draws' "${probe[@]}" --draws 0
refuses 2 '--threads' "${probe[@]}" --threads -1
refuses 2 'leave out --ema' "${probe[@]}" --ema
refuses 2 '--unweighted' "$sonde" probe run --target age --task regression --unweighted
refuses 2 '--key' "$sonde" probe whole --target header:Age --key x
for command in embed index bench selftest synth; do
  grep -q -- '--threads' <("$sonde" $command --help) || continue
  case $command in
    embed) refuses 2 '--threads' "$sonde" embed run --out x.npy --threads -1 ;;
    index) refuses 2 '--threads' "$sonde" index cohort --threads -1 ;;
    *) refuses 2 'threads' "$sonde" $command --threads -1 ;;
  esac
done
refuses 2 'leave out --ema' "$sonde" embed run --out x.npy --ema

# finetune
tune=("$sonde" finetune run --target sex --set finetune.steps=2 --set finetune.eval_every=1)
refuses 2 'no fine-tuning in nothing to go on with' "${tune[@]}" --out nothing --resume
refuses 2 '--seeds' "${tune[@]}" --seeds 0
refuses 2 '--draws' "${tune[@]}" --draws 0
refuses 2 '--folds 3' "${tune[@]}" --folds 3
"$sonde" synth ecg --out few --subjects 3 --recordings 1 --seconds 12 --leads 1 > /dev/null
few=(--labels few/labels.csv --key record --subject subject)
refuses 2 'people' "$sonde" finetune whole --data few --target sex "${few[@]}" --folds 3 \
  --set finetune.steps=2 --out few_out --transductive

# pretrain: settings without what they belong to; a preset in a file; init
pretrain=("$sonde" pretrain --preset ecg-tiny --data cohort "${tiny[@]}" --out none)
refuses 2 'data.train_part .*data.split is not set' "${pretrain[@]}" --set data.train_part=DS1
refuses 2 'data.key .*data.labels is not set' "${pretrain[@]}" --key x
refuses 2 'train.milestones is not used' "${pretrain[@]}" --set train.milestones=0.5
refuses 2 '--out is given twice' "${pretrain[@]}" --out other
[ ! -e none/checkpoints ] || fail "a refused run was begun"
if "$sonde" pretrain --settings > /dev/null; then
  printf '{"preset": "ecg-tiny"}' > preset.json
  refuses 2 'sonde pretrain --preset NAME preset.json' "$sonde" pretrain preset.json
  printf '{"train": {"lr": 1e-3},\n "phases": [{"train": {"steps": 1}}, {"data": {"rate": "50 Hz"}}]}' > phases.json
  refuses 2 'phases.1.data.rate: is the same in all phases' "$sonde" pretrain phases.json --data cohort
fi

# Tables with another delimiter: the hint names it.
tr ',' ';' < "$labels" > semicolons.csv
tr ',' '\t' < "$labels" > tabs.csv
refuses 2 "its lines hold ';'" "$sonde" probe run --target sex --labels semicolons.csv
refuses 2 'its lines hold tabs' "$sonde" probe run --target sex --labels tabs.csv

# index of a file, an old checkpoint, the waiting policy.
one=$(ls cohort/*.hea | head -1)
refuses 2 'sonde inspect' "$sonde" index "$one"
cp -r run old
for state in old/checkpoints/*/state.json; do sed -i 's/"sha256": "[0-9a-f]*"$/"x": "y"/' "$state"; done
refuses 1 'an older build' "$sonde" embed old --out x.npy
OMP_WAIT_POLICY=nonsense "$sonde" embed run --out x.npy 2> err || fail "a policy stopped it"
[ "$(grep -c "OMP_WAIT_POLICY is 'nonsense', which is neither" err)" = 1 ] || fail "no word of the policy"
OMP_WAIT_POLICY=PASSIVE "$sonde" embed run --out x.npy 2> err && ! grep -q OMP_WAIT err || fail "a word of the right policy"

# Whom the first run saw counts for the second, which left them out itself.
"$sonde" pretrain --preset ecg-tiny --data cohort "${people[@]}" --fold 0/2 "${tiny[@]}" --set init.run=whole --out second 2> err || fail "no second run"
[ -s second/inputs/split-0.tsv ] || fail "nothing inherited"
refuses 1 'leakage' "$sonde" probe second --target sex
"$sonde" pretrain --preset ecg-tiny --data cohort "${people[@]}" --fold 0/2 "${tiny[@]}" --set init.run=run --out third 2> err || fail "no third run"
"$sonde" probe third --target sex --draws 20 --seeds 1 > out 2> err || fail "a clean start was refused"
rm -r second/inputs
refuses 1 'leakage cannot be checked' "$sonde" probe second --target sex

# Leakage counts those that are tested: with --classes, the people of these classes.
awk -F, 'NR == 1 { print $0 ",group" } NR > 1 { print $0 "," (NR > 7 ? "c" : NR % 2 ? "a" : "b") }' "$labels" > groups.csv
leaks() { # EXPECTED OPTION...
  local expected=$1; shift
  "$sonde" probe whole --target group --labels groups.csv --key record --subject subject --transductive --folds 2 --draws 20 \
    --seeds 1 --json "$@" > out 2> err || fail "transductive failed"
  grep -q "\"pretraining_subjects_in_test\": *$expected," out || fail "$expected people should leak: $(grep in_test out)"
  checks=$((checks + 1))
}
leaks 8
leaks 6 --classes a,b
echo "$checks checks"
