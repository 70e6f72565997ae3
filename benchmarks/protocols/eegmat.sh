#!/usr/bin/env bash
# Rest against mental arithmetic on the 36 people of eegmat_125hz: six folds of people, one pretraining per fold, one joined
# probe of recordings. The rest recording always came first, so that drift within a session is mixed with the label.
#
#   eegmat.sh SONDE DATA OUT tune [RECIPE...]   tries recipes on the inner folds of folds 0 and 1 and prints all of them; no
#                                               score of a test person is looked at
#   eegmat.sh SONDE DATA OUT final              the chosen recipe, and waveforms with a spectral target beside it, once, with a
#                                               seed that tuning did not use
set -eu -o pipefail
sonde=$1 data=$2 out=$3 what=$4
shift 4
labels=(--labels "$data/labels.csv" --key file --subject subject --target state)
channels=Fp1,Fp2,F3,F4,F7,F8,T7,T8,C3,C4,P7,P8,P3,P4,O1,O2,Fz,Cz,Pz
mkdir -p "$out"

common="data.modality=eeg eeg.channels=$channels data.rate=125Hz data.crop=random data.normalize=none data.clip=0
  data.window=4s data.patch=1s data.patch_stride=1s model.width=64 model.depth=2 model.heads=4 mae.decoder_width=48
  mae.decoder_heads=3 train.pack_tokens=3840 train.steps=1000 train.checkpoint_every=1000"
spectra="data.tokens=log_rfft data.spectrum_low=0.4Hz data.spectrum_high=45Hz data.spectrum_floor=0.1
  model.input=standardized mae.target=raw mae.target_standardize=true"
long="data.window=10s data.stride=10s data.patch=2s data.patch_stride=2s"

settings() { # RECIPE
  case $1 in
    waveform) echo "$common data.normalize=zscore-window" ;;
    waveform_to_spectrum) echo "$common data.normalize=zscore-window mae.target=spectrum mae.target_standardize=true
      data.spectrum_low=0.4Hz data.spectrum_high=45Hz data.spectrum_floor=0.01" ;;
    random75) echo "$common $spectra" ;;
    zscore) echo "$common $spectra data.normalize=zscore-window data.spectrum_floor=0.01" ;;
    within_patch) echo "$common $spectra data.spectrum_normalize=patch" ;;
    channel50) echo "$common $spectra mae.mask=channel mae.mask_ratio=0.5" ;;
    channel75) echo "$common $spectra mae.mask=channel mae.mask_ratio=0.75" ;;
    time50) echo "$common $spectra mae.mask=time mae.mask_ratio=0.5" ;;
    blocks55) echo "$common $spectra mae.mask=spacetime mae.mask_radius=8cm mae.mask_time_radius=1 mae.mask_ratio=0.55" ;;
    channel50_pooled) echo "$common $spectra mae.mask=channel mae.mask_ratio=0.5 mae.pooled_weight=0.5" ;;
    channel50_neuro) echo "$common $spectra mae.mask=channel mae.mask_ratio=0.5 mae.neuro_weight=0.1" ;;
    channel50_long) echo "$common $spectra mae.mask=channel mae.mask_ratio=0.5 train.steps=2500" ;;
    long_random75) echo "$common $spectra $long" ;;
    long_channel50) echo "$common $spectra $long mae.mask=channel mae.mask_ratio=0.5" ;;
    long_blocks55) echo "$common $spectra $long mae.mask=spacetime mae.mask_radius=8cm mae.mask_time_radius=2
      mae.mask_ratio=0.55" ;;
    long_channel50_neuro) echo "$common $spectra $long mae.mask=channel mae.mask_ratio=0.5 mae.neuro_weight=0.1" ;;
    longer_channel50) echo "$common $spectra data.window=20s data.stride=20s data.patch=4s data.patch_stride=4s
      mae.mask=channel mae.mask_ratio=0.5" ;;
    *) echo "eegmat.sh: no recipe '$1'" >&2; return 1 ;;
  esac
}
recipes=(waveform waveform_to_spectrum random75 zscore within_patch channel50 channel75 time50 blocks55 channel50_pooled
  channel50_neuro channel50_long long_random75 long_channel50 long_blocks55
  long_channel50_neuro longer_channel50)
chosen=${CHOSEN-long_channel50}

pretrain() { # NAME RECIPE FOLD SEED
  local setting arguments=()
  [ -d "$out/$1/fold$3/checkpoints" ] && return 0
  for setting in $(settings "$2"); do arguments+=(--set "$setting"); done
  "$sonde" pretrain --data "$data" --labels "$data/labels.csv" --key file --subject subject --fold "$3/6" \
    --out "$out/$1/fold$3" --set train.seed="$4" "${arguments[@]}"
}

case $what in
tune)
  [ $# -gt 0 ] && recipes=("$@")
  for name in "${recipes[@]}"; do
    for fold in 0 1; do pretrain "$name" "$name" $fold 0 > "$out/log.txt" 2>&1 || { tail -3 "$out/log.txt" >&2; exit 1; }; done
    # The JSON's inner_score: best C by five inner folds of the training people.
    "$sonde" probe "$out/$name/fold0" "$out/$name/fold1" "${labels[@]}" --pool mean --pool per_channel --seeds 3 --draws 10 \
      --metric auroc --name tune --json > "$out/$name/tune.json" 2> "$out/log.txt" || { tail -3 "$out/log.txt" >&2; exit 1; }
    echo "recipe $name (auroc on inner folds, fold 0 and fold 1)"
    python3 - "$out/$name/tune.json" <<'PY'
import json, sys
for row in json.load(open(sys.argv[1]))["rows"]:
    scores = row["selected"]["inner_score"]
    if scores and row["pool"] != "chosen":
        print(f"  {row['encoder']:<11}{str(row['seed'] if row['encoder'] == 'random' else ''):<3}{row['pool'] or '-':<13}"
              + " ".join(f"{s:.3f}" for s in scores))
PY
  done
  ;;
final)
  for name in "$chosen" waveform_to_spectrum; do
    for fold in 0 1 2 3 4 5; do pretrain "final_$name" "$name" $fold 1001; done
    "$sonde" probe "$out/final_$name"/fold{0,1,2,3,4,5} "${labels[@]}" --pool mean --pool per_channel \
      --metric balanced_accuracy --name state
  done
  ;;
*)
  echo "eegmat.sh: tune or final, not '$what'" >&2
  exit 2
  ;;
esac
