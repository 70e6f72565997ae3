#!/usr/bin/env python3
"""What MNE (1.3) reads in MEG files: writes fif_golden.h, kit_golden.h, bti_golden.h and the small FIF files in ../corpus/fif.

    SONDE_DATA=... python3 make_meg.py

Units are those of the engine (fT, fT/cm, uV, mV), places in the head frame in metres where there is a device-to-head transform.
"""
import datetime
import math
import os
import sys
import warnings

import mne
import numpy as np
from mne.io.constants import FIFF

warnings.simplefilter("ignore")
mne.set_log_level("ERROR")
HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.environ["SONDE_DATA"]
CORPUS = os.path.join(HERE, "..", "corpus", "fif")


def kind_unit_scale(ch):
    kind, unit = ch["kind"], ch["unit"]
    if kind == FIFF.FIFFV_MEG_CH:
        return ("meg_grad", "fT/cm", 1e13) if unit == FIFF.FIFF_UNIT_T_M else ("meg_mag", "fT", 1e15)
    if kind == FIFF.FIFFV_REF_MEG_CH:
        return ("other", "fT/cm", 1e13) if unit == FIFF.FIFF_UNIT_T_M else ("other", "fT", 1e15)
    table = {FIFF.FIFFV_EEG_CH: ("eeg", "uV", 1e6), FIFF.FIFFV_EOG_CH: ("eog", "uV", 1e6),
             FIFF.FIFFV_ECG_CH: ("ecg", "mV", 1e3), FIFF.FIFFV_EMG_CH: ("emg", "mV", 1e3),
             FIFF.FIFFV_STIM_CH: ("trigger", "V" if unit == FIFF.FIFF_UNIT_V and ch["ch_name"].startswith("TRIGGER ") else "", 1.0)}
    if kind in table:
        return table[kind]
    return "other", {FIFF.FIFF_UNIT_V: "V", FIFF.FIFF_UNIT_T: "T", FIFF.FIFF_UNIT_UNITLESS: "NU"}.get(unit, ""), 1.0


def place(raw, ch):
    none = [math.nan] * 3
    meg = ch["kind"] in (FIFF.FIFFV_MEG_CH, FIFF.FIFFV_REF_MEG_CH)
    if ch["kind"] not in (FIFF.FIFFV_MEG_CH, FIFF.FIFFV_REF_MEG_CH, FIFF.FIFFV_EEG_CH):
        return none, none, "none"
    r0 = np.array(ch["loc"][:3], float)
    if not np.isfinite(r0).all() or not r0.any():
        return none, none, "none"
    axis = np.array(ch["loc"][3:6] if ch["unit"] == FIFF.FIFF_UNIT_T_M else ch["loc"][9:12], float)
    frame = "head"
    if meg:
        t = raw.info["dev_head_t"]
        if t is not None and not ARGS.get("device"):
            r0 = t["trans"][:3, :3] @ r0 + t["trans"][:3, 3]
            axis = t["trans"][:3, :3] @ axis
        else:
            frame = "device"
    return list(r0), list(axis / np.linalg.norm(axis)) if meg and axis.any() else none, frame


ARGS = {}


def number(x):
    return "NAN" if math.isnan(x) else repr(float(x))


def text(s):
    return '"' + s.replace("\\", "\\\\").replace('"', '\\"') + '"'


def describe(out, path, raw, step, events, **args):
    ARGS.clear()
    ARGS.update(args)
    name = "golden_%d" % describe.n
    describe.n += 1
    data = raw.get_data()
    n = data.shape[1]
    at = [0, 1, n // 2, n - 1]
    first = args.get("first_samp", raw.first_samp)
    out.append("static const golden_channel %s_channels[] = {" % name)
    kinds = {}
    rows = []
    for i, ch in enumerate(raw.info["chs"]):
        if args.get("skip") and args["skip"](ch):
            continue
        new = kinds.setdefault((ch["kind"], ch["unit"], ch["coil_type"]), i) == i
        if i % step and not new:
            continue
        kind, unit, scale = kind_unit_scale(ch)
        r0, axis, frame = place(raw, ch)
        v = data[i] * scale
        rows.append("  {%d, %s, %s, %s, %s, %d, %s, {%s}, {%s}, {%s}, %s, %s}" % (
            i, text(ch["ch_name"]), text(kind), text(unit), text(frame), ch["coil_type"] & 0xFFFF,
            "true" if ch["ch_name"] in raw.info["bads"] else "false", ", ".join(map(number, r0)),
            ", ".join(map(number, axis)), ", ".join(number(v[k]) for k in at), number(math.fsum(v)), number(math.fsum(abs(v)))))
    out.append(",\n".join(rows) + "};")
    table = []
    if events:
        table = mne.find_events(raw, shortest_event=1)
    out.append("static const golden_event %s_events[] = {%s};" % (
        name, ", ".join('{%d, "%d", -1}' % (e[0] - first, e[2]) for e in table) or "{0, NULL, 0}"))
    onsets = [(a["onset"] - raw.first_time, a["duration"], a["description"]) for a in raw.annotations]
    out.append("static const golden_text %s_texts[] = {%s};" % (
        name, ", ".join("{%s, %s, %s}" % (number(o), number(d), text(t)) for o, d, t in onsets) or "{0, 0, NULL}"))
    return "  {%s, %d, %d, %s, %d, %s_channels, %d, %s_events, %d, %s_texts}" % (
        text(path), len(raw.ch_names), n, number(raw.info["sfreq"]), len(rows), name, len(table), name, len(onsets), name)


describe.n = 0


def write(file, table, out, files):
    with open(os.path.join(HERE, file), "w") as f:
        f.write("/* Made by make_meg.py with MNE %s. */\n" % mne.__version__)
        f.write("\n".join(out))
        f.write("\nstatic const golden_file %s[] = {\n%s};\n" % (table, ",\n".join(files)))


# ---- small files, written by MNE ------------------------------------------------------------------------------------

N = 64


def small(file, fmt, long_names=False, date=True):
    rng = np.random.default_rng(7)
    types = ["mag", "mag", "grad", "grad", "eeg", "eeg", "eog", "ecg", "emg", "misc", "stim"]
    names = ["MEG 0111", "MEG 0121", "MEG 0112", "MEG 0113", "EEG 001", "EEG 002", "EOG 061", "ECG 062", "EMG 063", "MISC 1",
             "STI 014"]
    if long_names:
        names[4] = "a name of more than fifteen letters: one"
        names[5] = "a name of more than fifteen letters: two"
    info = mne.create_info(names, 600.614990234375, types)
    scale = {"mag": 1e-12, "grad": 1e-11, "eeg": 3e-5, "eog": 1e-4, "ecg": 1e-3, "emg": 1e-4, "misc": 1.0}
    data = np.zeros((len(names), N))
    for i, t in enumerate(types):
        data[i] = rng.standard_normal(N) * scale.get(t, 0)
    for start, stop, value in ((10, 15, 5), (15, 20, 8), (30, 31, 3), (40, 50, 1), (N - 1, N, 9)):
        data[-1, start:stop] = value
    with info._unlock():
        for i, t in enumerate(types):
            if t in scale:
                info["chs"][i]["cal"] = scale[t] / (1000 if fmt == "short" else 2 ** 20)
        for i, coil in enumerate((3024, 3024, 3012, 3012)):
            ch = info["chs"][i]
            ch["coil_type"] = coil
            q, _ = np.linalg.qr(rng.standard_normal((3, 3)))
            ch["loc"][:] = np.r_[rng.standard_normal(3) * 0.1, q.T.ravel()]
        info["chs"][4]["loc"][:3] = (0.01, 0.08, 0.05)
        info["lowpass"], info["highpass"], info["line_freq"] = 172.17, 0.1, 60.0
        if date:
            info["meas_date"] = datetime.datetime(2002, 12, 3, 19, 1, 10, 720100, tzinfo=datetime.timezone.utc)
            info["subject_info"] = dict(id=17, his_id="S-17", last_name="Secret", first_name="Very", birthday=(1970, 12, 4), sex=2)
        rot = mne.transforms.rotation(0.1, -0.2, 0.3)
        rot[:3, 3] = (0.001, -0.002, 0.04)
        info["dev_head_t"] = mne.transforms.Transform("meg", "head", rot)
    info["bads"] = [names[3], names[5]]
    raw = mne.io.RawArray(data, info, first_samp=120)
    first = raw.first_time if date else 0
    raw.set_annotations(mne.Annotations([first + 0.02, first + 0.1, first - 0.1], [0.02, 0.0, 0.15], ["blink: left", "Größe", "before"],
                                        raw.info["meas_date"]))
    proj = mne.Projection(active=False, data=dict(nrow=1, ncol=2, row_names=None, col_names=names[:2], data=np.array([[0.6, 0.8]])),
                          desc="PCA-v1", kind=1)
    raw.add_proj(proj)
    path = os.path.join(CORPUS, file)
    raw.save(path, fmt=fmt, overwrite=True, buffer_size_sec=0.05)
    return mne.io.read_raw_fif(path)


def fif():
    out, files = [], []
    for file, step in (("meg/neuromag_ctf_fif/test_ctf_comp_raw.fif", 29), ("meg/kit/test_bin_raw.fif", 31),
                       ("meg/bti/exported4D_linux_raw.fif", 41), ("eeg/mne_formats/brainvision/test_bin_raw.fif", 5)):
        raw = mne.io.read_raw_fif(os.path.join(DATA, file), allow_maxshield=True, on_split_missing="ignore")
        files.append(describe(out, file, raw, step, len(mne.pick_types(raw.info, meg=False, stim=True)) > 0))
    write("fif_golden.h", "FIF_GOLDEN", out, files)
    out, files = [], []
    for file, fmt, args in (("small_i16_raw.fif", "short", {}), ("small_i32_raw.fif", "int", dict(date=False)),
                            ("small_f32_raw.fif", "single", dict(long_names=True)), ("small_f64_raw.fif", "double", {})):
        files.append(describe(out, file, small(file, fmt, **args), 1, True))
    write("fif_small_golden.h", "FIF_SMALL_GOLDEN", out, files)


# ---- KIT --------------------------------------------------------------------------------------------------------------

def kit():
    file = "meg/kit/test.sqd"
    raw = mne.io.read_raw_kit(os.path.join(DATA, file), preload=True)  # its last channel is a code made of the trigger inputs
    assert raw.info["dev_head_t"] is None or np.allclose(raw.info["dev_head_t"]["trans"], np.eye(4))
    events = mne.find_events(raw, shortest_event=1)
    for ch in raw.info["chs"]:
        if ch["ch_name"].startswith("TRIGGER"):
            ch["kind"] = FIFF.FIFFV_STIM_CH
    raw.drop_channels(["STI 014"])
    out = []
    files = [describe(out, file, raw, 17, False, device=True)]
    number_of = "golden_%d" % (describe.n - 1)
    out = [("static const golden_event %s_events[] = {%s};" % (number_of, ", ".join('{%d, "%d", -1}' % (e[0], e[2]) for e in events)))
           if "_events[]" in line else line for line in out]
    files = [f.replace(" 0, %s_events" % number_of, " %d, %s_events" % (len(events), number_of)) for f in files]
    write("kit_golden.h", "KIT_GOLDEN", out, files)


# ---- 4D ---------------------------------------------------------------------------------------------------------------

def bti():
    folder = os.path.join(DATA, "meg/bti/")
    raw = mne.io.read_raw_bti(folder + "test_pdf_linux", folder + "test_config_linux", folder + "test_hs_linux",
                              rename_channels=False, preload=True)
    order = mne.io.bti.bti._read_bti_header(folder + "test_pdf_linux", folder + "test_config_linux")["order"]
    inverse = np.argsort(order)  # channels in the order of the samples
    events = mne.find_events(raw, stim_channel="TRIGGER", shortest_event=1)
    raw.reorder_channels([raw.ch_names[i] for i in inverse])
    for ch in raw.info["chs"]:
        if ch["ch_name"].startswith("G"):
            ch["unit"] = FIFF.FIFF_UNIT_T  # so it stands in the file
    out = []
    files = [describe(out, "meg/bti/test_pdf_linux", raw, 19, False)]
    name = "golden_%d" % (describe.n - 1)
    out = [("static const golden_event %s_events[] = {%s};" % (name, ", ".join('{%d, "%d", -1}' % (e[0], e[2]) for e in events)))
           if "_events[]" in line else line for line in out]
    files = [f.replace(" 0, %s_events" % name, " %d, %s_events" % (len(events), name)) for f in files]
    write("bti_golden.h", "BTI_GOLDEN", out, files)


def main():
    os.makedirs(CORPUS, exist_ok=True)
    only = sys.argv[1:] or ["fif", "kit", "bti"]
    for what in only:
        globals()[what]()


if __name__ == "__main__":
    main()
