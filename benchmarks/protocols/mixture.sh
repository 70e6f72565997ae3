#!/usr/bin/env bash
# One pretraining over EEG of several headsets and MEG together, and frozen probes after it.
#
#   mixture.sh SONDE DATA OUT     DATA: the folder that holds eegmat_125hz and eegmmi_s001
#
# Sources: synthetic EEG of 19, 32 and 64 electrodes, synthetic MEG (the real MEG files at hand are seconds long), real EEG of
# 64 electrodes (one person) and of 19 (eegmat, 36 people); shares of the tokens as below. Two folds of the people of all sources
# together, one pretraining each; every probe joins the two, so that each tested person was left out of pretraining.
# Beside it eegmat alone, with the same recipe and number of steps. One seed; nothing was tuned on these scores.
#
# Two recipes: the preset (log spectra), and waveforms whose target is the spectrum, which eegmat.sh found to gain most over a
# random network. The second was added after the first table had been seen.
set -eu -o pipefail
sonde=$1 data=$2 out=$3
mkdir -p "$out/data"

cohort() { # NAME KIND OPTION...
  [ -d "$out/data/$1" ] || "$sonde" synth "$2" --out "$out/data/$1" "${@:3}"
}
cohort cap19 eeg --headset 19 --subjects 24 --seconds 60 --seed 119
cohort cap32 eeg --headset 32 --subjects 24 --seconds 60 --seed 132
cohort cap64 eeg --headset 64 --subjects 24 --seconds 60 --seed 164
cohort helmet meg --subjects 16 --seconds 30 --seed 201

# Eyes open or closed, of the recordings at rest: the task in a file's name.
eyes() { # NAME ENDING
  ( cd "$out/data/$1" && echo "file,eyes" &&
      find . -name "*_task-eyes*$2" | sort | sed -E 's|^\./||; s|(.*_task-eyes(closed\|open)_.*)|\1,\2|' ) > "$out/data/$1.csv"
}
for name in cap19 cap32 cap64; do eyes $name _eeg.edf; done
eyes helmet _meg.fif

cat > "$out/sources.yaml" <<YAML
sources:
  - {name: cap19, data: {dir: "$out/data/cap19", share: 0.15}}
  - {name: cap32, data: {dir: "$out/data/cap32", share: 0.15}}
  - {name: cap64, data: {dir: "$out/data/cap64", share: 0.15}}
  - {name: helmet, data: {dir: "$out/data/helmet", share: 0.20}}
  - {name: eegmmi, data: {dir: "$data/eegmmi_s001", share: 0.05, fold: ""}}
  - {name: eegmat, data: {dir: "$data/eegmat_125hz", labels: "$data/eegmat_125hz/labels.csv", key: file, subject: subject, share: 0.30}}
YAML
cat > "$out/alone.yaml" <<YAML
data: {dir: "$data/eegmat_125hz", name: eegmat, labels: "$data/eegmat_125hz/labels.csv", key: file, subject: subject}
YAML

waveform=(--set data.tokens=waveform --set model.input=as_is --set mae.target=spectrum --set data.window=4s --set data.patch=1s
  --set data.patch_stride=1s --set mae.mask=random --set mae.mask_ratio=0.75)

pretrain() { # RUN SOURCES OPTION...
  local fold
  for fold in 0 1; do
    [ -d "$out/$1$fold/checkpoints" ] ||
      "$sonde" pretrain --preset eeg-meg-tiny "$out/$2.yaml" --fold $fold/2 --out "$out/$1$fold" --set train.seed=7 \
        --set train.checkpoint_every=1500 "${@:3}"
  done
}
pretrain sources sources
pretrain alone alone
pretrain waveform_sources sources "${waveform[@]}"
pretrain waveform_alone alone "${waveform[@]}"

probe() { # RUNS NAME DIRECTORY OPTION...
  "$sonde" probe "$out/$1"{0,1} --data "$3" --name "$2" --pool mean "${@:4}"
}
eegmat=(--labels "$data/eegmat_125hz/labels.csv" --key file --subject subject --target state --metric balanced_accuracy
  --pool per_channel)
for kind in sources alone waveform_sources waveform_alone; do
  echo "== $kind"
  probe $kind eegmat-state "$data/eegmat_125hz" "${eegmat[@]}"
done
for kind in sources waveform_sources; do
  for name in cap19 cap64 helmet; do
    # The helmet's coils are in no table of names, which per_channel would need.
    pools=(--pool per_channel)
    [ $name != helmet ] || pools=()
    echo "== $kind"
    probe $kind $name-eyes "$out/data/$name" --labels "$out/data/$name.csv" --key file --target eyes --metric balanced_accuracy \
      "${pools[@]}"
    probe $kind $name-age "$out/data/$name" --target participants:age --task regression "${pools[@]}"
  done
done
