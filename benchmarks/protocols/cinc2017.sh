#!/usr/bin/env bash
# N against AF, and four classes, on the 300 recordings of cinc2017_af: five folds of recordings (persons unknown), one
# pretraining per fold, one joined probe.
#
#   cinc2017.sh SONDE DATA OUT tune    tries recipes on the inner folds of folds 0 and 1 and prints all of them; no test
#                                      recording is looked at
#   cinc2017.sh SONDE DATA OUT final   the chosen recipe, once, with a seed that tuning did not use
set -eu -o pipefail
sonde=$1 data=$2 out=$3 what=$4
labels="--labels $data/REFERENCE_revised.csv --key 1 --subject recording --target 2"
mkdir -p "$out"

pretrain() { # NAME FOLD SEED SETTINGS...
  local name=$1 fold=$2 seed=$3
  shift 3
  [ -d "$out/$name/fold$fold/checkpoints" ] && return 0
  "$sonde" pretrain --preset ecg-tiny --data "$data" --subject recording --fold "$fold/5" --out "$out/$name/fold$fold" \
    --set train.seed="$seed" "$@"
}

recipes=(
  "steps1500:--set train.steps=1500"
  "steps1500_lr3e-3:--set train.steps=1500 --set train.lr=3e-3"
  "steps2500:--set train.steps=2500"
)
chosen=${CHOSEN-steps2500}

case $what in
tune)
  for recipe in "${recipes[@]}"; do
    name=${recipe%%:*}
    for fold in 0 1; do pretrain "$name" $fold 0 ${recipe#*:}; done
    # The JSON's inner_score: best C by five inner folds of the training recordings.
    "$sonde" probe "$out/$name/fold0" "$out/$name/fold1" $labels --classes N,A --pool mean --pool mean_max_std --seeds 1 \
      --draws 10 --name tune --json > "$out/$name/tune.json"
    echo "recipe $name"
    python3 - "$out/$name/tune.json" <<'PY'
import json, sys
for row in json.load(open(sys.argv[1]))["rows"]:
    scores = row["selected"]["inner_score"]
    if scores:
        print(f"  {row['encoder']:<11}{row['pool']:<14}" + " ".join(f"{s:.3f}" for s in scores))
PY
  done
  ;;
final)
  for recipe in "${recipes[@]}"; do
    [ "${recipe%%:*}" = "$chosen" ] || continue
    for fold in 0 1 2 3 4; do pretrain final $fold 1001 ${recipe#*:}; done
  done
  runs=("$out"/final/fold{0,1,2,3,4})
  "$sonde" probe "${runs[@]}" $labels --classes N,A --pool mean --pool mean_max_std --name af
  "$sonde" probe "${runs[@]}" $labels --pool mean --pool mean_max_std --metric auroc_macro --name four
  "$sonde" finetune "${runs[@]}" $labels --classes N,A --scratch --out "$out/finetune"
  ;;
*)
  echo "cinc2017.sh: tune or final, not '$what'" >&2
  exit 2
  ;;
esac
