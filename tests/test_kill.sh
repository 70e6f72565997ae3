#!/usr/bin/env bash
# Kill -9 at random moments, resume, and compare: weights, moments, moving average and metrics.jsonl must be byte-identical
# with the uninterrupted run, whatever the number of loader threads.
# A run of one phase, then one of three, which differ in masks, in the decoder and in what is frozen.
# usage: test_kill.sh SONDE [KILLS [KILLS_WHILE_SAVING]]     (of each run; defaults 6 and 2; half of the kills aim at a save)
set -eu
sonde=$1
kills=${2:-6}
wanted=${3:-2}
work=$(mktemp -d)
trap 'kill -9 $pid 2>/dev/null || true; rm -rf "$work"' EXIT
pid=
steps=90
settings="--set synthetic.windows=300 --set synthetic.tokens_least=12 --set synthetic.tokens_most=24 --set synthetic.channels=2
 --set model.width=192 --set model.heads=6 --set model.depth=4 --set mae.decoder_width=96 --set mae.decoder_heads=3
 --set train.pack_tokens=256 --set train.steps=$steps --set train.checkpoint_every=5 --set train.ema=0.99
 --set train.threads=2 --set model.dropout=0.1"
export SONDE_LOG=debug
echo '{}' > "$work/one.json"
cat > "$work/three.json" <<'END'
{"phases": [
  {"name": "warm", "train": {"steps": 33, "freeze": ["backbone."]}, "mae": {"mask_ratio": 0.5}},
  {"name": "main", "train": {"steps": 32, "schedule": "constant", "pack_tokens": 320}, "mae": {"mask": "contiguous"}},
  {"name": "cool", "train": {"steps": 25, "schedule": "linear", "warmup": 0, "freeze": ["embed."]}, "mae": {"decoder_depth": 2}}]}
END

# Starts or goes on with the run, with 1, 2 or 4 loader threads in turn.
start() {
  threads=$((1 << ($1 % 3)))
  if [ -f "$work/killed/config.yaml" ]; then
    "$sonde" pretrain --resume "$work/killed" --set train.loader_threads=$threads 2> "$work/log" &
  else
    "$sonde" pretrain "$work/$config.json" --data synthetic $settings --set train.loader_threads=$threads --out "$work/killed" 2> "$work/log" &
  fi
  pid=$!
}
count() { grep -c "$1" "$work/log" 2>/dev/null || true; }

# The run that was killed any number of times against the one that was not.
compare() {
  for file in metrics.jsonl checkpoints/step-0000000$steps/model.safetensors \
              checkpoints/step-0000000$steps/ema.safetensors checkpoints/step-0000000$steps/optimizer.safetensors; do
    cmp "$work/whole/$file" "$work/killed/$file"
  done
  [ "$(wc -l < "$work/killed/metrics.jsonl")" -eq $steps ]
  compared=$((compared + 1))
  rm -rf "$work/killed"
}

for config in one three; do
"$sonde" pretrain "$work/$config.json" --data synthetic $settings --set train.loader_threads=1 --out "$work/whole" \
  2> "$work/whole.log" || { cat "$work/whole.log"; exit 1; }
saving=0
done_kills=0
compared=0
attempt=0
RANDOM=20
while [ "$done_kills" -lt "$kills" ] || [ "$saving" -lt "$wanted" ]; do
  attempt=$((attempt + 1))
  if [ "$attempt" -gt $((kills * 10)) ]; then echo "only $saving of $wanted kills fell into a save after $attempt attempts"; exit 1; fi
  start "$attempt"
  if [ $((attempt % 2)) -eq 0 ]; then
    # In the middle of the first or second save of this stretch.
    n=$((1 + RANDOM % 2))
    while [ "$(count 'first write')" -lt "$n" ] && kill -0 $pid 2>/dev/null; do :; done
    sleep 0.0$((RANDOM % 4))
  else
    sleep "0.$((10 + RANDOM % 60))"
  fi
  if ! kill -9 $pid 2>/dev/null; then
    wait $pid || { cat "$work/log"; exit 1; } # finished before the kill
    compare
    continue
  fi
  wait $pid 2>/dev/null || true
  done_kills=$((done_kills + 1))
  if [ "$(count 'first write')" -gt "$(count 'renamed into place')" ]; then saving=$((saving + 1)); fi
done
start 1
wait $pid || { cat "$work/log"; exit 1; }
compare
echo "$config: $done_kills kills, $saving of them between a checkpoint's first write and its rename; $compared finished runs," \
     "each byte-identical with the uninterrupted one in weights, moments, moving average and metrics"
rm -rf "$work/whole"
done
