#!/usr/bin/env python3
"""Reference values for tests/test_edf_files.c: what MNE-Python reads from real files, channel by channel, and SHA-256 over the
stored integers as numpy takes them from the bytes by EDF's definition.

    SONDE_DATA=DIR python3 make_edf.py > edf_golden.h

Each channel (of files with many, every ninth) is read alone (include=), because MNE brings channels of different rates to one rate. Values are in V where
the unit is a voltage. Annotations and changes of the trigger word are MNE's; where they differ from the definition the
test says so.
"""
import hashlib
import os
import sys
import warnings

import mne
import numpy as np

mne.set_log_level("ERROR")
warnings.simplefilter("ignore")
ROOT = os.path.join(os.environ["SONDE_DATA"], "eeg")
FILES = [
    "edf_edge/bdf_jl/MK2_speedmode0_CMS_not_in_range_battery_charged.bdf",
    "edf_edge/bdf_jl/MK2_speedmode6_CMS_not_in_range_battery_charged.bdf",
    "edf_edge/edf_jl/bdf_test.bdf", "edf_edge/edf_jl/bdf_test.edf",
    "edf_edge/edfio/short_psg.edf", "edf_edge/edfio/short_psg.bdf",
    "edf_edge/pyedflib/test_generator.bdf", "edf_edge/pyedflib/test_generator_datarec_generator_2.bdf",
    "edf_edge/pyedflib/test_subsecond.edf", "edf_edge/pyedflib/test_utf8.edf",
    "eegmat_125hz/sub-00_rest.edf", "eegmat_125hz/sub-17_arith.edf", "eegmat_125hz/original_Subject00_2.edf",
    "eegmmi_s001/S001R01.edf", "eegmmi_s001/S001R02.edf", "eegmmi_s001/S001R04.edf",
    "mne_formats/edf/test.edf", "mne_formats/edf/test.bdf", "mne_formats/edf/test_uneven_samp.edf",
    "mne_formats/edf/test_bdf_stim_channel.bdf", "mne_formats/edf/duplicate_channel_labels.edf",
]
ANNOTATIONS_ALONE = ["edf_edge/edfio/SC4001EC-Hypnogram.edf"]


def header(raw):
    """Labels, samples per record and stored integers by the definition: nothing of MNE."""
    n = int(raw[252:256])
    at = 256
    columns = []
    for width in (16, 80, 8, 8, 8, 8, 8, 80, 8, 32):
        columns.append([raw[at + width * i:at + width * (i + 1)].decode("latin-1").strip() for i in range(n)])
        at += width * n
    width = 3 if raw[0] == 0xFF else 2
    counts = [int(c) for c in columns[8]]
    records = int(raw[236:244])
    data = np.frombuffer(raw[at:at + records * sum(counts) * width], np.uint8).reshape(records, -1)
    stored, offset = [], 0
    for label, count in zip(columns[0], counts):
        part = data[:, offset * width:(offset + count) * width].reshape(-1, width).astype(np.int64)
        value = sum(part[:, k] << (8 * k) for k in range(width))
        offset += count
        if label in ("EDF Annotations", "BDF Annotations"):
            continue
        trigger = label.lower() in ("status", "event marker", "sti 014")
        stored.append((label, value if trigger else np.where(value >= 1 << (8 * width - 1), value - (1 << 8 * width), value)))
    return stored


def open_mne(name, **keys):
    read = mne.io.read_raw_bdf if name.endswith("bdf") else mne.io.read_raw_edf
    return read(os.path.join(ROOT, name), preload=True, **keys)


def quote(text):
    return '"' + "".join(c if " " <= c <= "~" and c not in '"\\' else "".join("\\%03o" % b for b in c.encode()) for c in text) + '"'


files, channels, notes, events = [], [], [], []
for name in FILES:
    stored = header(open(os.path.join(ROOT, name), "rb").read())
    digest = hashlib.sha256()
    for _, x in stored:
        digest.update(x.astype("<i4").tobytes())
    whole = open_mne(name)
    files.append((name, len(stored), digest.hexdigest()))
    labels = [label for label, _ in stored]
    for index, label in enumerate(labels):
        if label.lower() in ("status", "event marker") or labels.count(label) > 1 or (len(labels) > 30 and index % 9 != 0):
            continue
        one = open_mne(name, include="^" + "".join("\\" + c if not c.isalnum() and c != " " else c for c in label) + "$", stim_channel=False)
        assert len(one.ch_names) == 1, (name, label, one.ch_names)
        x = one.get_data()[0]
        weights = 1.0 + np.arange(len(x)) % 13
        channels.append((len(files) - 1, index, len(x), one.info["sfreq"], x[0], x[-1], float(np.sum(x)), float(np.sum(np.abs(x))),
                         float(np.sum(x * weights))))
    for note in whole.annotations:
        notes.append((len(files) - 1, note["onset"], note["duration"], note["description"]))
    stims = [c for c in whole.ch_names if c.lower() == "status"]
    if stims:
        found = mne.find_events(whole, stim_channel=stims, consecutive=True, shortest_event=1, mask=65535, mask_type="and",
                                output="onset")
        for sample, before, value in found:
            events.append((len(files) - 1, sample - whole.first_samp, value))
for name in ANNOTATIONS_ALONE:
    files.append((name, 0, ""))
    for note in mne.read_annotations(os.path.join(ROOT, name)):
        notes.append((len(files) - 1, note["onset"], note["duration"], note["description"]))

print("/* Made by make_edf.py with MNE-Python %s. */" % mne.__version__)
print("static const struct {\n  const char *name;\n  int n_channels;\n  const char *sha256; /* of stored integers */\n} EDF_FILES[] = {")
for f in files:
    print('    {"%s", %d, "%s"},' % f)
print("};\n/* values: in V where the unit is a voltage */\nstatic const struct {\n  int file, channel, n;\n"
      "  double rate, first, last, sum, sum_abs, sum_weighted;\n} EDF_CHANNELS[] = {")
for c in channels:
    print("    {%d, %d, %d, %r, %r, %r, %r, %r, %r}," % c)
print("};\nstatic const struct {\n  int file;\n  double onset_s, duration_s;\n  const char *text;\n} EDF_NOTES[] = {")
for a in notes:
    print("    {%d, %r, %r, %s}," % (a[0], float(a[1]), float(a[2]), quote(a[3])))
print("};\nstatic const struct {\n  int file, sample, value;\n} EDF_EVENTS[] = {")
for e in events:
    print("    {%d, %d, %d}," % e)
print("};")
sys.stdout.flush()
