"""Hand-made Neuroscan files in tests/golden/neuroscan, checked with MNE-Python, and the seeds of tests/fuzz_neuroscan.c.

Run: /usr/bin/python3 tests/golden/make_neuroscan.py  (mne 1.3.0, numpy)
Stored value of channel c at sample t: 100 c + t - 7 in 16 bits, 100000 c + t - 7 in 32. Baseline c, sensitivity 2, calibration 1.5."""
import os
import struct
import warnings

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER, CORPUS = os.path.join(HERE, "neuroscan"), os.path.join(HERE, "..", "corpus", "neuroscan")
N_CHANNELS, N_SAMPLES, RATE = 3, 40, 250


def make(width, table_kind, n_samples=N_SAMPLES):
    setup = bytearray(900)
    setup[0:11] = b"Version 3.0"
    setup[225:235], setup[235:247] = b"01/02/20\0\0", b"10:11:12\0\0\0\0"
    start = 900 + 75 * N_CHANNELS
    table = start + N_CHANNELS * n_samples * width
    struct.pack_into("<H", setup, 370, N_CHANNELS)
    struct.pack_into("<H", setup, 376, RATE)
    struct.pack_into("<I", setup, 864, n_samples)
    struct.pack_into("<i", setup, 886, table)
    out = bytes(setup)
    for c, label in enumerate((b"FP1", b"CZ", b"VEOG")):
        e = bytearray(75)
        e[0:len(label)] = label
        e[14] = c == 1
        struct.pack_into("<h", e, 47, c)
        struct.pack_into("<f", e, 59, 2.0)
        struct.pack_into("<f", e, 71, 1.5)
        out += bytes(e)
    step = 100 if width == 2 else 100000
    values = step * np.arange(N_CHANNELS)[None, :] + np.arange(n_samples)[:, None] - 7
    out += values.astype("<i2" if width == 2 else "<i4").tobytes()
    events = [(11, 0, 0, 0), (0, 5, 0, 3), (0, 0, 0xE0, 20), (300, 0, 0, 39), (1, 0, 0, 4000)]
    body = b""
    for kind, keyboard, pad, sample in events:
        place = sample if table_kind == 3 else start + sample * N_CHANNELS * width
        body += struct.pack("<HBBi", kind, keyboard, pad, place) + (b"" if table_kind == 1 else b"\0" * 11)
    return out + struct.pack("<Bii", table_kind, len(body), 0) + body


def seed(name, data):
    with open(os.path.join(CORPUS, name), "wb") as out:
        out.write(b"r.cnt %d\n\n" % len(data) + data)


def check(path, width):
    import mne
    mne.set_log_level("ERROR")
    raw = mne.io.read_raw_cnt(path, preload=True, data_format="int16" if width == 2 else "int32", eog=["VEOG"])
    step = 100 if width == 2 else 100000
    stored = step * np.arange(N_CHANNELS)[:, None] + np.arange(N_SAMPLES)[None, :] - 7
    expected = (stored - np.arange(N_CHANNELS)[:, None]) * 2.0 * 1.5 / 204.8 * 1e-6
    assert raw.ch_names == ["FP1", "CZ", "VEOG"] and raw.info["sfreq"] == RATE
    # Not the bad channels: MNE looks for the mark at byte 4 of a channel's header, inside its label.
    assert raw.n_times == N_SAMPLES and np.abs(raw.get_data() - expected).max() < 1e-18, np.abs(raw.get_data() - expected).max()


def main():
    warnings.simplefilter("ignore")
    os.makedirs(FOLDER, exist_ok=True)
    os.makedirs(CORPUS, exist_ok=True)
    for width in (2, 4):
        for kind in (1, 2, 3):
            path = os.path.join(FOLDER, "w%dk%d.cnt" % (width, kind))
            with open(path, "wb") as out:
                out.write(make(width, kind))
            if kind == 2:
                check(path, width)
            seed("w%dk%d" % (width, kind), make(width, kind, 5))


main()
