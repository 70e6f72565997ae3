"""Values that SciPy reads from the MATLAB 5 files in $SONDE_DATA: tests/golden/mat5.tsv.

Run: SONDE_DATA=... /usr/bin/python3 tests/golden/make_mat5.py  (scipy 1.10.1)
A line: file, path of names, "text" and the text, or "numbers" and count, first, middle and last in MATLAB's order, and the sum."""
import os

import numpy as np
from scipy.io import loadmat

DATA = os.environ["SONDE_DATA"]
FILES = ["eeg/mne_formats/edf/test_edf_eeglab.mat", "eeg/mne_formats/edf/test_bdf_eeglab.mat", "eeg/mne_formats/edf/test_uneven_samp.mat"]
for folder, _, names in os.walk(os.path.join(DATA, "meg")):
    FILES += [os.path.relpath(os.path.join(folder, n), DATA) for n in names if n.endswith(".mat")]


def walk(path, value, rows, file):
    if isinstance(value, np.ndarray) and value.dtype.names and value.size:
        for name in value.dtype.names:
            walk(path + "." + name, value.ravel(order="F")[0][name], rows, file)
    elif isinstance(value, np.ndarray) and value.dtype.kind == "U" and value.size == 1 and value.ravel()[0].isprintable() and value.ravel()[0]:
        rows.append([file, path, "text", str(value.ravel()[0])])
    elif isinstance(value, np.ndarray) and value.dtype.kind in "iuf" and value.size and np.isfinite(value).all():
        flat = value.ravel(order="F").astype(float)
        rows.append([file, path, "numbers", str(flat.size)] + ["%.17g" % x for x in (flat[0], flat[flat.size // 2], flat[-1], flat.sum())])


rows = []
for file in sorted(set(FILES)):
    for name, value in loadmat(os.path.join(DATA, file)).items():
        if not name.startswith("__"):
            walk(name, value, rows, file)
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "mat5.tsv"), "w", encoding="utf-8") as out:
    out.writelines("\t".join(r) + "\n" for r in rows)
