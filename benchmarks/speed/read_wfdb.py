"""Whole records and windows of 4 s as float64 in units: sonde beside wfdb-python, in turn, with equal sums.
   python3 benchmarks/speed/read_wfdb.py SONDE RECORD.hea... [--rounds 5]
The Python that runs this needs numpy and wfdb."""
import argparse
import json
import subprocess
import time

import numpy as np
import wfdb


def sonde(command, path, seconds):
    out = subprocess.run([command, "bench", "read", "--file", path, "--json", "--seconds", str(seconds)], check=True,
                         stdout=subprocess.PIPE)
    return json.loads(out.stdout)["results"][0]


def channels(record):
    """One float64 array a channel, at its own rate."""
    return record.e_p_signal if record.e_p_signal is not None else list(record.p_signal.T)


def whole(name):
    return channels(wfdb.rdrecord(name, smooth_frames=False))


def sums(arrays):
    """Of the values, of their sizes, and weighted by place: benchmarks/speed/speed_read.c."""
    total = np.zeros(3)
    for k, a in enumerate(arrays):
        weights = 1 + (np.arange(len(a)) + 7 * k) % 13
        v = np.nan_to_num(np.asarray(a, dtype=np.float64))
        total += [v.sum(), np.abs(v).sum(), (v * weights).sum()]
    return total


def agrees(row, arrays):
    ours = np.array([row["sum"], row["sum_abs"], row["sum_weighted"]])
    return np.all(np.abs(ours - sums(arrays)) <= 1e-11 * row["sum_abs"] * 13)


def best(call, rounds):
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def windows(name, seed=0):
    header = wfdb.rdheader(name)
    frames = max(1, min(int(np.ceil(4 * header.fs)), header.sig_len // 2))
    starts = np.random.default_rng(seed).integers(0, header.sig_len - frames + 1, 20)
    start = time.perf_counter()
    for first in starts:
        wfdb.rdrecord(name, sampfrom=int(first), sampto=int(first) + frames, smooth_frames=False)
    return 1e6 * (time.perf_counter() - start) / len(starts)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sonde")
    parser.add_argument("records", nargs="+")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0)
    args = parser.parse_args()
    print(f"wfdb {wfdb.__version__}, numpy {np.__version__}; best of {args.rounds} rounds, warm cache")
    print(f"{'record':24} {'MB':>7} {'sonde ms':>9} {'wfdb ms':>9} {'ratio':>6} {'window us':>9} {'wfdb us':>9} {'ratio':>6}  values")
    for path in args.records:
        name = path[:-4] if path.endswith(".hea") else path
        ours, theirs, our_window, their_window = [], [], [], []
        try:
            whole(name)
        except Exception as problem:  # published headers that wfdb-python does not take
            print(f"{name.split('/')[-1]:24} wfdb-python cannot read it: {problem}")
            continue
        for _ in range(args.rounds):
            row = sonde(args.sonde, name + ".hea", args.seconds / args.rounds)
            ours.append(row["ms"])
            our_window.append(1e3 * row["window_ms"])
            theirs.append(1e3 * best(lambda: whole(name), 3))
            their_window.append(windows(name))
        same = "equal" if agrees(row, whole(name)) else "DIFFER"
        a, b, c, d = min(ours), min(theirs), min(our_window), min(their_window)
        print(f"{name.split('/')[-1]:24} {8e-6 * row['samples']:7.2f} {a:9.3f} {b:9.2f} {b / a:6.1f} {c:9.1f} {d:9.0f} {d / c:6.1f}"
              f"  {same}")


main()
