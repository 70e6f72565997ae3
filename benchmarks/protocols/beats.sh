#!/usr/bin/env bash
# Beat tokens against fixed patches: N against AF on cinc2017_af in five folds of recordings, and beats N against V on
# mitbih_arrhythmia_5min from DS1 to DS2 (ten seconds of context, a beat's own tokens pooled).  The same number of windows a step and
# of steps for every kind of token; one recipe each, not tuned; random encoders of the same kind of token beside.
#
#   [KINDS="fixed beat_pad ..."] [STEPS=2000] beats.sh SONDE CINC2017_DIR OUT [MITBIH_DIR]
# prints one table for each set; what OUT already holds is not made again.
set -eu -o pipefail
sonde=$1 data=$2 out=$3 mitbih=${4-}
steps=${STEPS-2000} windows=48 seed=1001
mkdir -p "$out"

kinds=(${KINDS-fixed beat_pad beat_resample beat_adaptive beat_resample_plain})
settings() { # KIND LEADS
  case $1 in
  fixed) echo "--preset ecg-tiny --set train.pack_tokens=$((windows * 50))" ;;
  beat_resample_plain) echo "--preset ecg-beats-tiny --set data.beat_features=none --set train.pack_tokens=$((windows * 14))" ;;
  *) echo "--preset ecg-beats-tiny --set data.tokens=$1 --set train.pack_tokens=$((windows * 14))" ;;
  esac
}
pretrain() { # DIR KIND ARGUMENTS...
  local dir=$1 kind=$2
  shift 2
  [ -d "$dir/checkpoints/step-$(printf %09d "$steps")" ] && return 0
  rm -rf "$dir"
  "$sonde" pretrain $(settings "$kind") --out "$dir" --set train.steps="$steps" --set train.seed=$seed "$@"
}
table() { # NAME FOLDER-OF-FIRST-RUN...
  python3 - "$out" "$@" <<'PY'
import json, os, sys
out, name, metrics = sys.argv[1], sys.argv[2], sys.argv[3].split(",")
def interval(m): return f"{m['value']:.3f} [{m['low']:.3f}, {m['high']:.3f}]"
print(f"{'tokens':<22}{'per recording':>14}  {'encoder':<12}{'pool':<14}" + "".join(f"{m:<26}" for m in metrics) + "pretrained - random, " + metrics[0])
for run in sys.argv[4:]:
    r = json.load(open(os.path.join(run, "probes", name + ".json")))
    last = json.loads(open(os.path.join(run, "metrics.jsonl")).readlines()[-1])
    tokens = last["tokens"] / last["samples"]
    per = tokens * r["n"]["windows"] / r["n"]["recordings"] if name == "af" else tokens
    kind = run.split("/")[-2] if name == "af" else run.split("/")[-1]
    rows = [("pretrained", row["pool"], row["metrics"]) for row in r["rows"] if row["encoder"] == "pretrained" and row["pool"] != "chosen"]
    rows += [("random mean", m["pool"], m["metrics"]) for m in r["random_means"] if m["pool"] != "chosen"]
    if run == sys.argv[4]:
        rows += [("raw", "-", row["metrics"]) for row in r["rows"] if row["encoder"] == "raw"]
    for encoder, pool, m in sorted(rows, key=lambda x: (x[1] == "-", x[1], x[0])):
        d = [p for p in r["paired"] if (p["a"], p["b"], p["pool"], p["metric"]) == ("pretrained", "random", pool, metrics[0])]
        text = f"{d[0]['difference']:+.3f} [{d[0]['low']:+.3f}, {d[0]['high']:+.3f}]" if d and encoder == "pretrained" else ""
        print(f"{kind:<22}{per:>14.1f}  {encoder:<12}{pool:<14}" + "".join(f"{interval(m[k]):<26}" for k in metrics) + text)
PY
}

for kind in "${kinds[@]}"; do
  runs=()
  for fold in 0 1 2 3 4; do
    pretrain "$out/$kind/fold$fold" "$kind" --data "$data" --subject recording --fold "$fold/5"
    runs+=("$out/$kind/fold$fold")
  done
  [ -f "$out/$kind/fold0/probes/af.json" ] || "$sonde" probe "${runs[@]}" --labels "$data/REFERENCE_revised.csv" --key 1 --subject recording \
    --target 2 --classes N,A --pool mean --pool mean_max_std --name af
done
folders=()
for kind in "${kinds[@]}"; do folders+=("$out/$kind/fold0"); done
table af auroc,balanced_accuracy "${folders[@]}"

[ -n "$mitbih" ] || exit 0
labels="--labels $mitbih/record_counts.csv --key record --subject subject"
for kind in fixed beat_resample; do
  pretrain "$out/mitbih/$kind" "$kind" --data "$mitbih" $labels --split split --set data.exclude=201 --set ecg.leads=MLII
  [ -f "$out/mitbih/$kind/probes/beats.json" ] || "$sonde" probe "$out/mitbih/$kind" $labels --split split:DS1:DS2 --exclude 201 \
    --target annotation:aami --classes N,V --window 0.3 --context 10 --pool mean --metric balanced_accuracy --name beats
done
table beats balanced_accuracy,auroc "$out/mitbih/fixed" "$out/mitbih/beat_resample"
