#!/usr/bin/env bash
# The HDF5 file of `sonde embed` opened by h5py: shapes, names and attributes, values equal to those of the NPY file, and the
# example of docs/output.md, run as it stands there.
set -eu
sonde=$1
docs=$PWD/docs/output.md
"$sonde" embed --help > /dev/null 2>&1 || { echo "skipped: this build lacks embed"; exit 77; }
for python in /usr/bin/python3 python3 none; do
  [ "$python" != none ] || { echo "skipped: no Python with h5py and numpy"; exit 77; }
  if "$python" -c 'import h5py, numpy' 2> /dev/null; then break; fi
done
work=$(mktemp -d "${TMPDIR:-/tmp}/sonde embed.XXXXXX"); trap 'rm -rf "$work"' EXIT
cd "$work"
"$sonde" synth ecg --out cohort --subjects 3 --recordings 2 --seconds 25 > /dev/null
"$sonde" pretrain --preset ecg-tiny --data cohort --labels cohort/labels.csv --key record --subject subject --out run \
  --set model.width=16 --set model.heads=2 --set model.depth=1 --set mae.decoder_width=16 --set mae.decoder_heads=1 \
  --set train.pack_tokens=1280 --set train.steps=2 --set train.threads=1 2> log || { cat log; exit 1; }
code=0
"$sonde" embed run --out features.h5 2> log || code=$?
if grep -q 'HDF5' log && [ $code != 0 ]; then echo "skipped: this build lacks HDF5"; exit 77; fi
"$sonde" embed run --out features.npy --json > summary.json 2> log
"$sonde" embed run --out windows.h5 --windows 2> log
"$sonde" embed run --out windows.npy --windows 2> log
cat > check.py <<'END'
import csv, json
import h5py, numpy as np
summary = json.load(open("summary.json"))
for name, rows in (("features", 6), ("windows", 12)):
    plain = np.load(name + ".npy")
    table = list(csv.DictReader(open(name + ".tsv"), delimiter="\t"))
    with h5py.File(name + ".h5") as file:
        x = file["features"]
        assert x.shape == plain.shape == (rows, 16) and x.dtype == np.float32 == plain.dtype, (x.shape, x.dtype, plain.shape)
        assert np.isfinite(plain).all() and np.abs(plain).max() > 0
        assert x[:].tobytes() == plain.tobytes()
        assert len(np.unique(plain, axis=0)) == rows
        assert [r["recording"] for r in table] == list(file["recording"].asstr()[:])
        assert [r["subject"] for r in table] == list(file["subject"].asstr()[:])
        assert set(file["subject"].asstr()[:]) == {"s00000", "s00001", "s00002"}, file["subject"].asstr()[:]
        assert [float(r["window_start_s"]) for r in table] == list(file["window_start_s"][:])
        assert [int(r["n_windows"]) for r in table] == list(file["n_windows"][:])
        assert sorted(set(file["window_start_s"][:])) == ([0] if rows == 6 else [0, 10])
        assert file.attrs["checkpoint_step"] == 2 and file.attrs["pool"] == "mean" and file.attrs["dataset"] == "cohort"
        assert file.attrs["encoder_sha256"] == summary["encoder_sha256"] and len(file.attrs["manifest_sha256"]) == 64
        assert json.loads(file.attrs["preprocessing"])["rate_num"] == 100
print("equal")
END
"$python" check.py
awk '/^    import json$/ { on = 1 } on && /^$/ { exit } on { print substr($0, 5) }' "$docs" > example.py
[ "$(wc -l < example.py)" -ge 8 ] || { echo "the example of docs/output.md was not found"; exit 1; }
"$python" example.py > printed
grep -q "^(6, 16) float32 s00000_0" printed || { echo "the example printed: $(cat printed)"; exit 1; }
