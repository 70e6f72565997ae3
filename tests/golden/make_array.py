"""Small arrays made by NumPy and h5py into tests/golden/array, and the seeds of tests/fuzz_array.c into tests/corpus/array.

Run: /usr/bin/python3 tests/golden/make_array.py  (numpy, h5py 3.7.0)
Channel c of point t is 100 c + t, in every file."""
import json
import os

import h5py
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER, CORPUS = os.path.join(HERE, "array"), os.path.join(HERE, "..", "corpus", "array")
N_CHANNELS, N_POINTS = 3, 50


def samples(dtype):
    return (100 * np.arange(N_CHANNELS)[:, None] + np.arange(N_POINTS)[None, :]).astype(dtype)


def sidecar(name, axes, **more):
    keys = {"rate": 250, "channels": ["Fp1", "Cz", "EOG"], "units": "uV", "axes": axes}
    keys.update(more)
    with open(os.path.join(FOLDER, name + ".json"), "w") as out:
        json.dump(keys, out, indent=1)
        out.write("\n")


def seed(name, *files):
    with open(os.path.join(CORPUS, name), "wb") as out:
        for file, data in files:
            out.write(("%s %d\n" % (file, len(data))).encode())
        out.write(b"\n")
        for _, data in files:
            out.write(data)


def npy(array):
    path = os.path.join(CORPUS, "tmp.npy")
    np.save(path, array)
    data = open(path, "rb").read()
    os.remove(path)
    return data


def main():
    os.makedirs(FOLDER, exist_ok=True)
    os.makedirs(CORPUS, exist_ok=True)
    for dtype in ("i1", "u1", "<i2", ">i2", "<u2", "<i4", ">i4", "<u4", "<i8", "<f4", ">f4", "<f8"):
        wide = dtype[-1] != "1"
        a = samples(dtype) if wide else (samples("i4") % 100).astype(dtype)
        name = "t" + dtype.replace("<", "").replace(">", "b")
        np.save(os.path.join(FOLDER, name + ".npy"), a)
        sidecar(name, "channels,time")
    np.save(os.path.join(FOLDER, "fortran.npy"), np.asfortranarray(samples("<f4")))
    sidecar("fortran", "channels,time")
    np.save(os.path.join(FOLDER, "rows.npy"), samples("<f8").T.copy())
    sidecar("rows", "time,channels")
    np.save(os.path.join(FOLDER, "one.npy"), samples("<f8")[0])
    sidecar("one", "time,channels", channels=["Cz"])
    for name, options in (("contiguous", {}), ("chunked", {"chunks": (2, 20), "compression": "gzip"})):
        with h5py.File(os.path.join(FOLDER, name + ".h5"), "w") as f:
            f.create_dataset("raw/eeg", data=samples(">i2"), **options)
        sidecar(name, "channels,time", dataset="/raw/eeg")
    np.savetxt(os.path.join(FOLDER, "table.csv"), samples("f8").T, fmt="%g", delimiter=",", header="Fp1,Cz,EOG", comments="")
    sidecar("table", "time,channels", header_lines=1)
    with open(os.path.join(FOLDER, "picked.tsv"), "w") as out:
        out.write("# a comment\ntime\tEOG\tFp1\tCz\n" + "".join("%g\t%g\t%g\t%g\n" % (t / 250, 200 + t, t, 100 + t) for t in range(N_POINTS)))
    sidecar("picked", "time,channels", header_lines=2, columns=[2, 3, 1])
    side = json.dumps({"rate": "250/3", "channels": ["a", "b"], "units": ["mV", "uV"], "kinds": ["eeg", "eog"], "axes": "channels,time",
                       "scale": [0.5, 2], "positions_m": [[0, 0.1, 0], None], "bad": ["b"], "reference": "Cz"}).encode()
    seed("int16", ("r.npy", npy(np.arange(20, dtype="<i2").reshape(2, 10))), ("r.json", side))
    seed("fortran", ("r.npy", npy(np.asfortranarray(np.arange(20, dtype=">f4").reshape(2, 10)))), ("r.json", side))
    seed("rows", ("r.npy", npy(np.arange(20, dtype="<f8").reshape(10, 2))), ("r.json", side.replace(b"channels,time", b"time,channels")))
    seed("csv", ("r.csv", b"a,b\n1,2\n3,nan\n,4e5\n"), ("r.json", b'{"rate": 10, "channels": ["a", "b"], "header_lines": 1, "scale": 3}'))
    seed("tsv", ("r.tsv", b"# c\n1\t2\t3\r\nn/a\t5\t6\r\n"), ("r.json", b'{"rate": 10, "channels": ["a", "b"], "columns": [2, 0], "delimiter": "\\t"}'))


main()
