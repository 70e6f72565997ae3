#!/usr/bin/env bash
# sonde benchmark: the table of the tiny suite, against sonde probe; again, killed, two at once, changed, and what is refused.
set -eu
sonde=$(realpath "$1")
"$sonde" --help | grep -q '^  benchmark ' || { echo "skipped: this build lacks benchmark"; exit 77; }
suites=$(cd "$(dirname "$0")/../benchmarks/suites" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/sonde benchmark.XXXXXX"); trap 'rm -rf "$work"' EXIT
fail() { echo "$1"; exit 1; }
cd "$work"
export OMP_NUM_THREADS=1
"$sonde" synth ecg --out cohort --subjects 40 --seconds 20 --leads 1 > /dev/null
sed 's/checkpoint_every: 10/checkpoint_every: 10, threads: 1/' "$suites/tiny.yaml" > tiny.yaml
grep -q 'threads: 1' tiny.yaml || fail "the example suite has changed"

# A dry run writes nothing.
"$sonde" benchmark tiny.yaml --dry-run > plan 2> log || fail "--dry-run failed: $(cat log)"
grep -q '^pretraining: 0 done, 0 to resume, 8 to do$' plan || fail "not the plan: $(cat plan)"
[ ! -e runs ] || fail "a dry run wrote something"

# Files of another hand are not replaced, and nothing is done before that is known.
mkdir mine
for name in table.csv table.json table.md runs/mae50/seed-0/fold-1/result.json scores/sex/linear/baseline-0.safetensors; do
  rm -rf mine; mkdir -p "mine/$(dirname "$name")"; printf '# mine\n' > "mine/$name"
  for dry in "" --dry-run; do
    code=0; "$sonde" benchmark tiny.yaml --out mine $dry > /dev/null 2> log || code=$?
    [ $code = 2 ] && grep -q "mine/$name: is there and is not\|mine/$name: is there without" log || fail "a foreign $name gave status $code: $(cat log)"
  done
  [ "$(cat "mine/$name")" = '# mine' ] && [ "$(find mine -type f | wc -l)" = 1 ] || fail "something was written beside $name"
done
code=0; "$sonde" benchmark tiny.yaml --out cohort/runs > /dev/null 2> log || code=$?
[ $code = 2 ] && grep -q 'cannot lie in the directory of its data' log && [ ! -e cohort/runs ] || fail "runs in the data: status $code: $(cat log)"

"$sonde" benchmark tiny.yaml > table 2> log || fail "it failed: $(cat log)"
cmp table runs/tiny/table.md || fail "standard output and table.md differ"
for line in '^## sex, linear' '^## sex, knn' '^| mae75 | mean |' '^| mae50 | chosen |' '^| random | mean_max_std |' '^| raw |' '^| majority |'; do
  grep -q "$line" table || fail "the table lacks '$line': $(cat table)"
done
[ "$(wc -l < runs/tiny/table.csv)" = 23 ] || fail "table.csv has not a header and 22 rows: $(cat runs/tiny/table.csv)"
[ "$(awk -F, '{print NF}' runs/tiny/table.csv | sort -u)" = 36 ] || fail "rows of table.csv differ in length"
grep -q '^,sex,knn,mae50,,mean,auroc,0\..*,ok$' runs/tiny/table.csv || fail "no row of mae50 in table.csv"

# Again: nothing is made, and the same bytes.
cp -r runs/tiny first
"$sonde" benchmark tiny.yaml --json > json 2> log || fail "the second time failed: $(cat log)"
grep -q '8 of 8 pretrainings were done, 0 made now; 0 of 10 predictions made now' log || fail "something was made again: $(cat log)"
for f in table.csv table.json table.md; do cmp first/$f runs/tiny/$f || fail "another $f"; done
cmp json runs/tiny/table.json || fail "standard output and table.json differ"
"$sonde" benchmark tiny.yaml --dry-run > plan
grep -q '^predictions: 10 done, 0 to do' plan || fail "not the plan: $(cat plan)"

# In one file the table stands whole before what is said of it.
"$sonde" benchmark tiny.yaml > both 2>&1 || fail "the third time failed: $(cat both)"
tail -n 1 both | grep -q '^written: runs/tiny/table.md' || fail "standard error stands in the table: $(cat both)"

# One seed: the values and intervals of sonde probe, to the last digit.
sed 's/seeds: \[0, 1\]/seeds: [1]/' tiny.yaml > one.yaml
"$sonde" benchmark one.yaml > /dev/null 2> log || fail "one seed failed: $(cat log)"
protocols="linear knn"
command -v python3 > /dev/null || { protocols=""; echo "no python3: the suite's figures are not compared with those of sonde probe"; }
for protocol in $protocols; do
  k=""; [ $protocol = knn ] && k="--k 10"
  "$sonde" probe runs/tiny/runs/mae50/seed-1/fold-0 runs/tiny/runs/mae50/seed-1/fold-1 --target sex --pool mean --pool mean_max_std \
    --draws 200 --classifier $protocol $k --json > probe.json 2> log || fail "probe failed: $(cat log)"
  awk -F, -v p=$protocol '$3 == p && $4 == "mae50" && $6 == "mean" {print $8, $9, $10, $15, $16, $17, $20, $21, $22}
                          $3 == p && $4 == "random" && $6 == "chosen" {print $8, $9, $10}' runs/tiny/table.csv > suite.txt
  python3 - probe.json suite.txt <<'PY' || fail "sonde probe and the suite disagree ($protocol)"
import json, sys
probe = json.load(open(sys.argv[1]))
lines = [[float(x) for x in line.split()] for line in open(sys.argv[2])]
row = next(r for r in probe["rows"] if r["encoder"] == "pretrained" and r["pool"] == "mean")["metrics"]["auroc"]
pairs = [p for p in probe["paired"] if p["pool"] == "mean" and p["metric"] == "auroc"]
mean = next(r for r in probe["random_means"] if r["pool"] == "chosen")["metrics"]["auroc"]
expected = [row["value"], row["low"], row["high"]]
for other in ("random", "raw"):
    p = next(p for p in pairs if p["b"] == other)
    expected += [p["difference"], p["low"], p["high"]]
assert lines[0] == expected, (lines[0], expected)
assert lines[1] == [mean["value"], mean["low"], mean["high"]], (lines[1], mean)
PY
done

# Killed at any point, and given again until it is done: the same table but for the time that it took.
sed 's#out: runs/tiny#out: runs/killed#' tiny.yaml > killed.yaml
kills=0
for i in 1 2 3 4; do
  "$sonde" benchmark killed.yaml > /dev/null 2> log &
  victim=$!
  # A little after the first run of this call has begun, each time a little later.
  while kill -0 $victim 2> /dev/null && ! grep -q '^[0-9]*/[0-9]* ' log; do sleep 0.005; done
  sleep "0.0$((2 * i))"
  kill -KILL $victim 2> /dev/null || break
  code=0
  wait $victim || code=$?
  [ $code = 137 ] || break
  [ ! -d runs/killed ] || flock runs/killed true # until the process that was killed is gone
  kills=$((kills + 1))
done 2> /dev/null # the shell says of each that it was killed
"$sonde" benchmark killed.yaml > /dev/null 2> log || fail "after $kills kills: $(cat log)"
[ $kills -ge 3 ] || fail "only $kills kills"
without_time() { awk -F, -v OFS=, '{$30 = ""; print}' "$1"; }
cmp <(without_time first/table.csv) <(without_time runs/killed/table.csv) || fail "another table after $kills kills"
for f in runs/mae50/seed-1/fold-1/checkpoints/step-000000020/model.safetensors runs/mae75/seed-0/fold-0/metrics.jsonl; do
  cmp "first/$f" "runs/killed/$f" || fail "another $f after $kills kills"
done

# Two on one folder.
exec 9< runs/tiny
flock 9
code=0; "$sonde" benchmark tiny.yaml > /dev/null 2> log 9<&- || code=$?
exec 9<&-
[ $code != 0 ] && grep -q 'another process' log || fail "two processes on one folder: exit $code: $(cat log)"

# A setting that changes no result is no other run; one that does is refused with the line of the run.
sed 's/checkpoint_every: 10/checkpoint_every: 5/' tiny.yaml > neutral.yaml
"$sonde" benchmark neutral.yaml --dry-run | grep -q '^pretraining: 8 done' || fail "checkpoint_every made another run"
sed 's/mask_ratio: 0.5/mask_ratio: 0.6/' tiny.yaml > changed.yaml
code=0; "$sonde" benchmark changed.yaml > /dev/null 2> log || code=$?
line=$(grep -n 'name: mae50' changed.yaml | cut -d: -f1)
[ $code = 1 ] && grep -q "changed.yaml:$line: .*mae.mask_ratio: 0.5, now 0.6" log || fail "changed settings: exit $code: $(cat log)"
# Another task under a known name is predicted again, and nothing else.
sed 's/k: 10/k: 12/' tiny.yaml > k.yaml
"$sonde" benchmark k.yaml --dry-run > plan
grep -q '^predictions: 5 done, 5 to do' plan || fail "another k: $(cat plan)"
# A prediction that is damaged is made again.
printf 'x' | dd of=runs/tiny/scores/sex/linear/mae50-seed-1.safetensors bs=1 conv=notrunc 2> /dev/null
"$sonde" benchmark tiny.yaml > /dev/null 2> log || fail "damaged predictions: $(cat log)"
grep -q '1 of 10 predictions made now' log && cmp first/table.md runs/tiny/table.md || fail "damaged predictions were not made again: $(cat log)"

# Sets, a budget that is refused, fine-tuning, a run that fails beside others, --root.
mkdir -p elsewhere && cat > sets.yaml <<'YAML'
out: runs/sets
preset: ecg-tiny
settings:
  data: {dir: cohort, labels: cohort/labels.csv, key: record, subject: subject, fold: 0/2, window: 5 s}
  model: {width: 32, depth: 1, heads: 2}
  mae: {decoder_width: 32, decoder_heads: 2}
  train: {pack_tokens: 640, steps: 10, threads: 1}
budget: {tokens: 6400}
random_seeds: 1
draws: 100
sets:
  - name: one
    tasks:
      - {name: sex, target: sex, protocols: [finetune], finetune: {steps: 4, eval_every: 2}}
  - name: two
    settings: {data: {window: 2 s}}
    tasks:
      - {name: age, target: age, task: regression, metric: mae, protocols: [linear]}
runs:
  - {name: a}
  - {name: wide, settings: {model: {width: 48}}, in: {two: {mae: {mask_ratio: 0.6}}}}
  - {name: broken, only: [two], settings: {data: {exclude: [nobody]}}}
YAML
code=0; (cd elsewhere && "$sonde" benchmark ../sets.yaml --root .. --out out > table 2> log) || code=$?
[ $code = 1 ] || fail "a failed run gave exit $code: $(cat elsewhere/log)"
for line in '^## one: sex, finetune' '^## two: age, linear' '^| a |.*excludes\|^| a |.*includes' '^| scratch (a) |' '^| random (wide) |' \
            '^| broken |.*failed, 1 of 1 seeds' '^- two/broken seed 0:.*nobody' \
            '^| random (a) | mean | [0-9]'; do
  grep -q "$line" elsewhere/table || fail "the table lacks '$line': $(cat elsewhere/table)"
done
grep -q '"mask_ratio": 0.6' elsewhere/out/runs/two/wide/seed-0/requested.json || fail "'in' was not applied"
grep -q '"mask_ratio": 0.75' elsewhere/out/runs/one/wide/seed-0/requested.json || fail "'in' was applied elsewhere"
# In another place the same, and only what failed is tried again.
cp elsewhere/table before
code=0; "$sonde" benchmark sets.yaml --root . --out elsewhere/out > table 2> log || code=$?
[ $code = 1 ] && grep -q '4 of 5 pretrainings were done, 0 made now; 0 of' log || fail "not only the failed one: exit $code: $(cat log)"
tail -n +2 before | cmp - <(tail -n +2 table) || fail "another table from another place"

# Errors name the line.
refused() { # line, words, file with the fault
  local code=0
  "$sonde" benchmark "$3" ${4:-} > /dev/null 2> log || code=$?
  [ $code = 2 ] && grep -q "$3:$1: .*$2" log || fail "exit $code, expected $3:$1: $2: $(cat log)"
}
edit() { sed "$1" sets.yaml > bad.yaml; }
edit 's/steps: 10/steps: 20/';                refused 20 'train.steps 10 would fit' bad.yaml
edit 's/width: 32, depth/widht: 32, depth/';  refused 5 'model.widht' bad.yaml
# So do tasks that no run could make possible, before the first one and in a dry run: nothing is written, and it is said once.
for dry in "" --dry-run; do
  edit 's/target: age/target: agge/';           refused 18 "task 'age' of set two: .*no column 'agge', did you mean 'age'" bad.yaml $dry
  edit 's/protocols: \[linear\]/protocols: [linear, knn], k: 5/'; refused 18 "the target 'age' is a number" bad.yaml $dry
  edit 's/{name: age.*/{name: sex, target: sex, protocols: [knn], k: 100}/'; refused 18 'k is 100, and of 80 items' bad.yaml $dry
  edit 's/{name: age.*/{name: sex, target: sex, classes: Q, protocols: [linear]}/'; refused 18 "task 'sex' of set two" bad.yaml $dry
  edit 's/{name: age.*/{name: sex, target: sex, key: recrd, protocols: [linear]}/'; refused 18 "no column 'recrd'" bad.yaml $dry
  edit 's/{name: wide, settings: {/&objective: {name: contrast}, contrast: {loss: clip, positives: subject}, /'
  refused 21 "run 'wide'.*pairs recordings of two data sets" bad.yaml $dry
  [ "$(wc -l < log)" = 1 ] || fail "said more than once: $(cat log)"
  [ -z "$(find runs/sets -type f 2> /dev/null)" ] || fail "something was written before a task was refused"
done
edit 's/preset: ecg-tiny/preset: ecg-tny/';   refused 2 'ecg-tiny' bad.yaml
edit 's/random_seeds/random_seed/';           refused 9 "did you mean 'random_seeds'" bad.yaml
edit 's/name: wide/name: a/';                 refused 21 'given twice' bad.yaml
edit 's/name: wide/name: random/';            refused 21 'baseline' bad.yaml
edit 's/only: \[two\]/only: [three]/';        refused 22 "no set 'three'" bad.yaml
edit 's/protocols: \[finetune\]/protocols: [attentive]/'; refused 14 'linear, knn or finetune' bad.yaml
edit 's/metric: mae/metrics: mae/';           refused 18 "did you mean 'metric'" bad.yaml
edit 's/threads: 1/seed: 1/';                 refused 20 "'seeds'" bad.yaml
edit 's/fold: 0\/2, //';                      refused 20 'leaves nobody out' bad.yaml
edit 's/tokens: 6400/tokens: many/';          refused 8 'whole number' bad.yaml
edit 's/data: {window: 2 s}/objective: {name: mea}/'; refused 20 'mae' bad.yaml
edit 's/^out:.*//';                           refused 2 '--out' bad.yaml
code=0; "$sonde" benchmark nowhere.yaml 2> log || code=$?
[ $code != 0 ] && grep -q nowhere.yaml log || fail "a suite that is not there: exit $code: $(cat log)"
"$sonde" benchmark --help | grep -q 'rule: scale' || fail "--help shows no suite"
