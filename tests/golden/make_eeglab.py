"""Small EEGLAB data sets made by SciPy (level 5) and h5py (7.3) into tests/golden/eeglab, and the seeds of tests/fuzz_eeglab.c into
tests/corpus/eeglab. No file that EEGLAB wrote was at hand: these follow its documentation.

Run: /usr/bin/python3 tests/golden/make_eeglab.py  (scipy 1.10.1, h5py 3.7.0)

Channel c of point t (from 0) is 10 c + t / 4 (in float32 exact), in every file."""
import io
import os

import h5py
import numpy as np
from scipy.io import savemat

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "eeglab")
CORPUS = os.path.join(HERE, "..", "corpus", "eeglab")
N_CHANNELS, N_POINTS = 3, 1280
LABELS, TYPES = ["Fp1", "Cz", "VEOG"], ["EEG", "EEG", "EOG"]
XYZ = [(80.0, 27.0, -4.0), (0.0, 0.0, 85.0), None]


def samples(n=N_POINTS):
    return (10 * np.arange(N_CHANNELS)[:, None] + np.arange(n)[None, :] / 4).astype(np.float32)


def locations(scale=1.0):
    out = np.zeros((1, N_CHANNELS), dtype=[(k, object) for k in ("labels", "type", "X", "Y", "Z", "theta")])
    for i in range(N_CHANNELS):
        place = [np.zeros((0, 0))] * 3 if XYZ[i] is None else [v * scale for v in XYZ[i]]
        out[0, i] = (LABELS[i], TYPES[i], place[0], place[1], place[2], 1.0)
    return out


def events(rows):
    out = np.zeros((1, len(rows)), dtype=[(k, object) for k in ("type", "latency", "duration", "urevent")])
    for i, (kind, latency, duration) in enumerate(rows):
        out[0, i] = (kind, latency, np.zeros((0, 0)) if duration is None else duration, i + 1)
    return out


EVENTS = [("S  1", 1.0, 1), (255, 129.00875, None), ("Gr\u00f6\u00dfe", 1280, 0)]


def structure(data, n=N_POINTS, trials=1, rows=EVENTS, scale=1.0, **more):
    eeg = {"setname": "made", "nbchan": float(N_CHANNELS), "trials": float(trials), "pnts": float(n), "srate": 128.0, "xmin": 0.0,
           "data": data, "ref": "common", "chanlocs": locations(scale), "event": events(rows), "urevent": np.zeros((0, 0)),
           "history": "x" * 40}
    eeg.update(more)
    return eeg


def mat(contents, compress=True):
    out = io.BytesIO()
    savemat(out, contents, do_compression=compress, long_field_names=True)
    raw = bytearray(out.getvalue())
    raw[:116] = b"MATLAB 5.0 MAT-file".ljust(116)  # without the date, so that the file is the same each time
    return bytes(raw)


def put_text(group, name, text):
    d = group.create_dataset(name, data=np.array([[ord(c)] for c in text], dtype=np.uint16))
    d.attrs["MATLAB_class"] = np.bytes_("char")
    return d


def put_number(group, name, value):
    d = group.create_dataset(name, data=np.atleast_2d(np.asarray(value, dtype=np.float64)))
    d.attrs["MATLAB_class"] = np.bytes_("double")
    return d


def put_empty(group, name):
    d = group.create_dataset(name, data=np.array([0, 0], dtype=np.uint64))
    d.attrs["MATLAB_class"] = np.bytes_("double")
    d.attrs["MATLAB_empty"] = np.uint8(1)
    return d


def put_any(group, name, value):
    if isinstance(value, str):
        return put_text(group, name, value)
    return put_empty(group, name) if value is None else put_number(group, name, value)


def mat73(path, data, inside=True):
    raw = io.BytesIO()
    with h5py.File(raw, "w", userblock_size=512) as f:
        refs, eeg = f.create_group("#refs#"), f.create_group("EEG")
        counter = [0]

        def reference(value):
            counter[0] += 1
            return put_any(refs, "r%d" % counter[0], value).ref

        for name, value in (("nbchan", N_CHANNELS), ("pnts", N_POINTS), ("trials", 1), ("srate", 128)):
            put_number(eeg, name, value)
        put_text(eeg, "ref", "common")
        if inside:
            eeg.create_dataset("data", data=data.T, compression="gzip").attrs["MATLAB_class"] = np.bytes_("single")
        else:
            put_text(eeg, "data", "other.fdt")
        group = eeg.create_group("chanlocs")
        rows = [dict(labels=LABELS[i], type=TYPES[i], X=XYZ[i] and XYZ[i][0], Y=XYZ[i] and XYZ[i][1], Z=XYZ[i] and XYZ[i][2])
                for i in range(N_CHANNELS)]
        for key in ("labels", "type", "X", "Y", "Z"):
            group.create_dataset(key, data=np.array([[reference(r[key])] for r in rows], dtype=h5py.ref_dtype), dtype=h5py.ref_dtype)
        group = eeg.create_group("event")
        for k, key in enumerate(("type", "latency", "duration")):
            group.create_dataset(key, data=np.array([[reference(r[k])] for r in EVENTS], dtype=h5py.ref_dtype), dtype=h5py.ref_dtype)
    contents = bytearray(raw.getvalue())
    contents[:116] = b"MATLAB 7.3 MAT-file".ljust(116)
    contents[124:128] = b"\x00\x02IM"
    write(path, bytes(contents))
    return bytes(contents)


def write(name, contents):
    with open(os.path.join(FOLDER, name), "wb") as out:
        out.write(contents)


def seed(name, *files):
    with open(os.path.join(CORPUS, name), "wb") as out:
        for file, data in files:
            out.write(("%s %d\n" % (file, len(data))).encode())
        out.write(b"\n")
        for _, data in files:
            out.write(data)


def check():
    """MNE-Python 1.3 reads the same from the files of level 5 (onsets to a microsecond; an absent duration is 0 there)."""
    import warnings

    import mne
    warnings.simplefilter("ignore")
    mne.set_log_level("ERROR")
    for name in ("inside.set", "plain.set", "beside.set"):
        raw = mne.io.read_raw_eeglab(os.path.join(FOLDER, name), preload=True)
        assert raw.ch_names == LABELS and raw.info["sfreq"] == 128
        assert np.abs(raw.get_data() * 1e6 - samples()).max() < 1e-12
        assert np.abs(raw.annotations.onset - [0, 128.00875 / 128, 1279 / 128]).max() < 1e-6
        assert list(raw.annotations.description) == [str(e[0]) for e in EVENTS]
        places = raw.get_montage().get_positions()["ch_pos"]
        assert np.abs(places["Fp1"] - [-0.027, 0.080, -0.004]).max() < 1e-12


def main():
    os.makedirs(FOLDER, exist_ok=True)
    os.makedirs(CORPUS, exist_ok=True)
    fdt = samples().T.astype("<f4").tobytes()
    write("inside.set", mat({"EEG": structure(samples())}))
    write("plain.set", mat({"EEG": structure(samples().astype(np.float64))}, compress=False))
    write("beside.set", mat({"EEG": structure("beside.fdt", datfile="beside.fdt")}))
    write("beside.fdt", fdt)
    write("renamed.set", mat({"EEG": structure("C:\\data\\old name.fdt")}))
    write("renamed.fdt", fdt)
    write("fields.set", mat(structure(samples(), scale=0.001)))
    epochs = samples().reshape(N_CHANNELS, 10, 128).transpose(0, 2, 1)
    write("epochs.set", mat({"EEG": structure(epochs, n=128, trials=10, scale=1 / 85, rows=[("a", 1.0, None), ("b", 200.0, None)])}))
    write("boundary.set", mat({"EEG": structure(samples(), rows=[("boundary", 0.5, None), ("S", 300.0, None), ("boundary", 256.5, 128.0),
                                                                  (-99, 1001, None), ("late", 5000.0, None)])}))
    mat73("inside73.set", samples())
    mat73("beside73.set", samples(), inside=False)
    write("beside73.fdt", fdt)
    small = lambda **k: structure(samples(20), n=20, rows=[("S", 2.5, 1), ("boundary", 10.5, 3.0), (7, 20, None)], **k)
    seed("inside", ("r.set", mat({"EEG": small()})))
    seed("plain", ("r.set", mat({"EEG": small()}, compress=False)))
    seed("fields", ("r.set", mat(small(), compress=False)))
    seed("epochs", ("r.set", mat({"EEG": structure(samples(20).reshape(3, 4, 5), n=4, trials=5)}, compress=False)))
    beside = small()
    beside.update(data="r.fdt", datfile="r.fdt")
    seed("beside", ("r.set", mat({"EEG": beside}, compress=False)), ("r.fdt", samples(20).T.astype("<f4").tobytes()))
    seed("renamed", ("r.set", mat({"EEG": dict(beside, data="../x.dat", datfile="")}, compress=False)),
         ("r.dat", samples(20).astype("<f4").tobytes()))


main()
check()
