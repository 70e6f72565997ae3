"""What MNE-Python reads of the BrainVision files in $SONDE_DATA: tests/golden/brainvision.tsv and brainvision_events.tsv.

Run: SONDE_DATA=... /usr/bin/python3 tests/golden/make_brainvision.py  (mne 1.3.0, numpy)

brainvision.tsv, a line per channel: file, channel from 0, rate, samples, name, unit as stated, x y z (m; "-" none), the values at
samples 0, 1, n/2, n-1 and their sum in units of the header (what MNE gives, divided by the factor FACTOR that it applies to the
unit; the unit is read from the header here, because MNE replaces those it does not know by "n/a"), and the SHA-256 of the stored numbers (values / resolution, as int16 or float32 little-endian)."""
import hashlib
import os
import warnings

import mne
import numpy as np

warnings.simplefilter("ignore")
mne.set_log_level("ERROR")
DATA = os.path.join(os.environ["SONDE_DATA"], "eeg", "mne_formats", "brainvision")
HERE = os.path.dirname(os.path.abspath(__file__))
FILES = ["test", "testv2", "test_highpass", "test_mixed_highpass", "test_units", "test_old_layout_latin1_software_filter"]
FACTOR = {"V": 1.0, "mV": 1e-3, "µV": 1e-6, "uV": 1e-6, "nV": 1e-9, "µS": 1e-6, "uS": 1e-6}


def channel_fields(path):
    """(resolution, unit) of each channel entry; an absent unit is the format's, microvolt."""
    raw = open(path, "rb").read()
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    found, inside = [], False
    for line in text.splitlines():
        if line.startswith("["):
            inside = line.startswith("[Channel Infos]")
        elif inside and line.startswith("Ch"):
            fields = line.split("=", 1)[1].split(",") + ["", "", ""]
            found.append((float(fields[2]), fields[3].strip() or "\u00b5V"))
    return found


def main():
    rows, events = [], []
    for name in FILES:
        raw = mne.io.read_raw_brainvision(os.path.join(DATA, name + ".vhdr"), preload=True)
        fields = channel_fields(os.path.join(DATA, name + ".vhdr"))
        montage = raw.get_montage()
        places = montage.get_positions()["ch_pos"] if montage is not None else {}
        data, n = raw.get_data(), raw.n_times
        for i, channel in enumerate(raw.ch_names):
            resolution, unit = fields[i]
            value = data[i] / FACTOR.get(unit, 1.0)
            stored = value / resolution
            if name.startswith("test_old"):
                stored = stored.astype("<f4")
            else:
                assert np.abs(stored - np.rint(stored)).max() < 1e-6
                stored = np.rint(stored).astype("<i2")
            place = places.get(channel)
            there = place is not None and np.isfinite(place).all() and np.any(place)
            xyz = ["%.17g" % v for v in place] if there else ["-"] * 3
            rows.append([name, str(i), "%.17g" % raw.info["sfreq"], str(n), channel, unit] + xyz +
                        ["%.17g" % value[k] for k in (0, 1, n // 2, n - 1)] + ["%.17g" % value.sum()] +
                        [hashlib.sha256(stored.tobytes()).hexdigest()])
        for a in raw.annotations:
            events.append([name, a["description"], str(int(round(a["onset"] * raw.info["sfreq"]))),
                           "%.17g" % a["duration"]])
    for file, lines in (("brainvision.tsv", rows), ("brainvision_events.tsv", events)):
        with open(os.path.join(HERE, file), "w", encoding="utf-8") as out:
            out.writelines("\t".join(line) + "\n" for line in lines)


main()
