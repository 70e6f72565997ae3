#!/usr/bin/env python3
"""Reference values for tests/test_wfdb_records.c, read by the wfdb package: SHA-256 over the stored integers of some
records, as little-endian int32, signal after signal, each at its own rate, missing samples INT32_MIN.

    SONDE_DATA=DIR python3 make_wfdb.py > wfdb_golden.h

The package refuses records whose start time it does not understand; it gets copies of the headers without it.
"""
import hashlib
import os
import sys
import tempfile

import numpy as np
import wfdb

RECORDS = [
    "cinc2017_af/A00001", "cinc2017_af/A00013", "cinc2017_af/A00044", "cinc2021_12lead/A0689",
    "cinc2021_12lead/E00009", "cinc2021_12lead/JS20005", "mitbih_arrhythmia_5min/100", "mitbih_arrhythmia_5min/114",
    "mitbih_arrhythmia_5min/201", "mitbih_arrhythmia_5min/232", "wfdb_formats/s0010_re", "wfdb_formats/v102s",
    "wfdb_formats/a103l", "wfdb_formats/100_3chan", "wfdb_formats/test01_00s_frame", "wfdb_formats/3000003_0003",
    "wfdb_formats/310derive", "wfdb_formats/311derive_2", "wfdb_formats/flacformats",
]
LOWEST = {"16": -32768, "212": -2048, "80": -128, "310": -512, "311": -512, "508": -128, "516": -32768, "524": -8388608}

print("/* Made by make_wfdb.py with wfdb %s: record, SHA-256 over its stored integers. */" % wfdb.__version__)
print("static const struct {\n  const char *record, *sha256;\n} WFDB_GOLDEN[] = {")


def without_start_time(path, folder):
    source, base = os.path.split(path)
    for name in os.listdir(source):
        if not name.endswith(".hea"):
            target = os.path.join(folder, name)
            if not os.path.lexists(target):
                os.symlink(os.path.join(source, name), target)
    lines = open(path + ".hea", encoding="latin-1").read().splitlines()
    first = next(i for i, line in enumerate(lines) if line.strip() and not line.startswith("#"))
    lines[first] = " ".join([base] + lines[first].split()[1:4])
    with open(os.path.join(folder, base + ".hea"), "w", encoding="latin-1") as out:
        out.write("\n".join(lines) + "\n")
    return os.path.join(folder, base)


for name in RECORDS:
    with tempfile.TemporaryDirectory() as folder:
        path = without_start_time(os.path.join(os.environ["SONDE_DATA"], "ecg", name), folder)
        record = wfdb.rdrecord(path, physical=False, smooth_frames=False, return_res=32)
    digest = hashlib.sha256()
    for signal, fmt in zip(record.e_d_signal, record.fmt):
        x = np.asarray(signal, dtype=np.int64)
        x[x == LOWEST[fmt]] = -2**31
        digest.update(x.astype("<i4").tobytes())
    print('    {"%s", "%s"},' % (name, digest.hexdigest()))
print("};")
sys.stdout.flush()
