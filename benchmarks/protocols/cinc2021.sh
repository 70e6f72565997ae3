#!/usr/bin/env bash
# Rhythm (NSR, SB, STach) on the twelve-lead recordings of cinc2021_12lead: five folds of recordings (persons unknown).
#   cinc2021.sh SONDE DATA OUT tune     tries recipes on the inner folds of fold 0 and prints them; no test recording is scored
#                                       for a choice
#   cinc2021.sh SONDE DATA OUT final    pretrains the chosen recipe for all folds with a new seed, probes and fine-tunes once
# A pack holds ten recordings: the loss rests on a plateau (0.95 to 0.93) for the first 1,200 steps.
set -eu -o pipefail
sonde=$1 data=$2 out=$3 what=${4:-final}
labels="--labels $data/labels.csv --key record --subject recording --target rhythm --classes NSR,SB,STach --metric balanced_accuracy"
mkdir -p "$out"
pretrain() { # NAME FOLD SEED SETTING...
  local name=$1 fold=$2 seed=$3
  shift 3
  [ -d "$out/$name/checkpoints" ] || "$sonde" pretrain --preset ecg-tiny --data "$data" --subject recording --fold "$fold/5" \
    --out "$out/$name" --set train.seed="$seed" "$@"
}
case $what in
tune)
  for steps in 500 4000; do
    pretrain "tune-$steps" 0 7 --set train.steps=$steps
    "$sonde" probe "$out/tune-$steps" $labels --pool mean --pool mean_max_std --draws 10 --name inner > /dev/null
    python3 - "$out/tune-$steps/probes/inner.json" "$steps steps" <<'END'
import json, sys
for row in json.load(open(sys.argv[1]))["rows"]:
    scores = (row["selected"] or {}).get("inner_score") or []
    if scores:
        print(f"{sys.argv[2]:<12}{row['encoder']:<11}{row['pool']:<14}{row['seed'] or '':<3}" + " ".join(f"{s:.3f}" for s in scores))
END
  done
  ;;
final)
  for fold in 0 1 2 3 4; do pretrain "fold$fold" $fold 1002 --set train.steps=4000; done
  "$sonde" probe "$out"/fold{0,1,2,3,4} $labels --pool mean --pool mean_max_std --name rhythm
  rm -rf "$out/finetune"
  "$sonde" finetune "$out"/fold{0,1,2,3,4} $labels --scratch --out "$out/finetune"
  ;;
*)
  echo "cinc2021.sh: tune or final, not '$what'" >&2
  exit 2
  ;;
esac
