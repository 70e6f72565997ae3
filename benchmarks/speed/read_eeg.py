"""Called by read_eeg.sh: `sonde bench read --file F` and MNE-Python on the same files, each measurement in a process of its own,
in turn; the best of the rounds counts on both sides.

Whole: from the path to all values (MNE: preload=True).  Windows: 64 of 4 s at the same random places of an open recording
(MNE: preload=False, get_data(start, stop)).  Values are compared by three sums over all of them (of values, of their sizes,
weighted by place), within 1e-9 of the sum of sizes.  Trigger channels are read by both and compared by none; nor are
channels without a unit, which sonde does not give values of, and of files whose channels differ in rate only the times of
whole reads stand, with "differs", since MNE brings them to one rate."""
import argparse
import json
import math
import os
import subprocess
import sys
import time

EXTENSIONS = (".edf", ".bdf", ".vhdr", ".fif", ".fif.gz", ".set", ".gdf")
WINDOWS = 64


def read(mne, path, preload):
    keys = {"preload": preload, "verbose": "ERROR"}
    readers = {".edf": mne.io.read_raw_edf, ".bdf": mne.io.read_raw_bdf, ".gdf": mne.io.read_raw_gdf,
               ".vhdr": mne.io.read_raw_brainvision, ".set": mne.io.read_raw_eeglab}
    extension = os.path.splitext(path)[1].lower()
    if extension in readers:
        return readers[extension](path, **keys)
    return mne.io.read_raw_fif(path, allow_maxshield=True, **keys)


def window_start(k, n, length):
    x = k + 1
    for _ in range(4):
        x = (x * 6364136223846793005 + 1442695040888963407) % 2**64
    return (x >> 33) % (n - length + 1)


def sums(np, raw, picks, scales, x, first):
    total = [0.0, 0.0, 0.0]
    for place, (pick, scale) in enumerate(zip(picks, scales)):
        values = x[pick] * scale
        weights = 1.0 + (first + np.arange(len(values)) + 7 * place) % 13
        total[0] += float(np.sum(values))
        total[1] += float(np.sum(np.abs(values)))
        total[2] += float(np.sum(values * weights))
    return total


def measure_mne(path, channels, seconds, windows_from, length, clock):
    """One process's answer, as JSON on standard output. channels: [[index, scale], ...] of those that are compared."""
    import warnings

    import mne
    import numpy as np
    warnings.simplefilter("ignore")
    whole, windows = [], []
    raw = read(mne, path, True)
    x = raw.get_data()
    picks, scales = [c[0] for c in channels], [c[1] for c in channels]
    answer = {"n_channels": len(raw.ch_names), "n_samples": x.shape[1], "sums": None, "window_sums": None}
    if channels and max(picks) < x.shape[0]:
        answer["sums"] = sums(np, raw, picks, scales, x, 0)
    del x
    start = time.perf_counter()
    while not whole or time.perf_counter() - start < seconds / 2:
        before = clock()
        raw = read(mne, path, True)
        whole.append(clock() - before)
    raw = read(mne, path, False)
    starts = [windows_from + window_start(k, raw.n_times - windows_from, length) for k in range(WINDOWS)]
    total = [0.0, 0.0, 0.0]
    for first in starts:
        x = raw.get_data(start=first, stop=first + length)
        if answer["sums"] is not None:
            total = [a + b for a, b in zip(total, sums(np, raw, picks, scales, x, first))]
    answer["window_sums"] = total if answer["sums"] is not None else None
    start = time.perf_counter()
    while not windows or time.perf_counter() - start < seconds / 2:
        before = clock()
        for first in starts:
            raw.get_data(start=first, stop=first + length)
        windows.append((clock() - before) / WINDOWS)
    answer.update(ms=1e3 * min(whole), window_ms=1e3 * min(windows), version=mne.__version__)
    print(json.dumps(answer))


def run_json(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no message"])[-1])
    return json.loads(done.stdout[done.stdout.index("{"):])


def compare(path, options):
    sonde, python = options.sonde, options.python
    seen = run_json([sonde, "inspect", "--json", path])
    factor = {"uV": 1e6, "mV": 1e3, "fT": 1e15, "fT/cm": 1e13}
    channels = [[i, factor.get(c["unit"], 1.0)] for i, c in enumerate(seen["channels"]) if c["calibration"]["gain"] is not None]
    one_rate = len({tuple(c["rate_hz"]) for c in seen["channels"]}) == 1 and len(seen["segments"]) == 1
    row, theirs = {"file": path, "format": seen["format"], "same": None}, None
    for _ in range(options.rounds):
        ours = run_json([sonde, "bench", "read", "--file", path, "--seconds", str(options.seconds), "--json"] +
                        (["--cpu-time"] if options.cpu_time else []))["results"][0]
        length = int(ours["window_frames"])
        theirs = run_json([python, os.path.abspath(__file__), "--measure", path, json.dumps(channels if one_rate else []),
                           str(options.seconds), "0", str(length), "cpu" if options.cpu_time else "wall"])
        for key, value in (("ms", ours["ms"]), ("window_ms", ours["window_ms"])):
            row["sonde_" + key] = min(value, row.get("sonde_" + key, math.inf))
        for key in ("ms", "window_ms"):
            row["mne_" + key] = min(theirs[key], row.get("mne_" + key, math.inf))
    row["mb"] = ours["samples"] * 8e-6
    row["ratio"] = row["mne_ms"] / row["sonde_ms"]
    row["window_ratio"] = row["mne_window_ms"] / row["sonde_window_ms"] if one_rate else None
    if theirs["sums"] is not None:
        mine = [ours["sum"], ours["sum_abs"], ours["sum_weighted"], ours["window_sum"], ours["window_sum_abs"],
                ours["window_sum_weighted"]]
        other = theirs["sums"] + theirs["window_sums"]
        size = [mine[1]] * 2 + [13 * mine[1]] + [mine[4]] * 2 + [13 * mine[4]]
        row["same"] = all(math.isfinite(a) and abs(a - b) <= 1e-9 * s for a, b, s in zip(mine, other, size))
    row["mne"] = theirs["version"]
    return row


def main():
    if len(sys.argv) > 1 and sys.argv[1] == "--measure":
        path, channels, seconds, first, length, clock = sys.argv[2:8]
        clock = time.process_time if clock == "cpu" else time.perf_counter
        return measure_mne(path, json.loads(channels), float(seconds), int(first), int(length), clock)
    parser = argparse.ArgumentParser()
    parser.add_argument("sonde")
    parser.add_argument("python")
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--cpu-time", action="store_true", help="CPU time of both processes instead of the clock's, on a busy machine")
    parser.add_argument("--json")
    options = parser.parse_args()
    files = []
    for path in options.paths:
        if os.path.isdir(path):
            files += sorted(os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names
                            if name.lower().endswith(EXTENSIONS))
        else:
            files.append(path)
    rows, wrong = [], 0
    print("%-44s %8s %10s %10s %7s %10s %10s %7s  %s" % ("file", "MB f64", "sonde ms", "MNE ms", "ratio", "window ms", "MNE ms", "ratio",
                                                        "values"))
    for path in files:
        try:
            row = compare(path, options)
        except (RuntimeError, ValueError) as problem:
            print("%-44s %s" % (path[-44:], problem))
            continue
        rows.append(row)
        wrong += row["same"] is False
        print("%-44s %8.2f %10.3f %10.3f %7.1f %10.4f %10.4f %7s  %s" % (
            path[-44:], row["mb"], row["sonde_ms"], row["mne_ms"], row["ratio"], row["sonde_window_ms"], row["mne_window_ms"],
            "%.1f" % row["window_ratio"] if row["window_ratio"] else "-",
            {True: "equal", False: "NOT EQUAL", None: "differs"}[row["same"]]), flush=True)
    if options.json:
        with open(options.json, "w") as out:
            json.dump({"results": rows}, out, indent=1)
    if not rows:
        sys.exit("no file was read by both")
    sys.exit(1 if wrong else 0)


main()
