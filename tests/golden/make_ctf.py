#!/usr/bin/env python3
"""What MNE (1.3) reads in the CTF data set that tests/ctf_case.h makes: writes ctf_golden.h, and ../corpus/ctf/nine_channels for the
fuzzer.

    python3 make_ctf.py

The data set is written here a second time, from the layout alone; its digests stand in the table, so that both writers agree.
MNE joins all trials; the engine keeps the 30 samples between the second and the third, which the system clock tells: what
lies in the third is moved by them.
"""
import hashlib
import os
import struct
import tempfile

os.environ.setdefault("SONDE_DATA", "")
import make_meg  # noqa: E402
import mne  # noqa: E402

CHANNELS, SAMPLES, TRIALS, BEFORE, RATE, GAP = 9, 6, 3, 2, 1200.0, 30
ROTATION, SHIFT = [[2, -1, 2], [2, 2, -1], [-1, 2, 2]], [1, -2, 20]  # a third of it, cm


def to_head(p, move):
    return [(r[0] * p[0] + r[1] * p[1] + r[2] * p[2]) / 3 + (s if move else 0) for r, s in zip(ROTATION, SHIFT)]


def to_dewar(h):
    d = [x - s for x, s in zip(h, SHIFT)]
    return [(ROTATION[0][i] * d[0] + ROTATION[1][i] * d[1] + ROTATION[2][i] * d[2]) / 3 for i in range(3)]


# name, type, gains (proper, q, io), coils (place in the dewar, cm), direction
SENSORS = [("MLC11-1609", 5, (-1e9, 1048576, 1), [(-4, 3, 8), (-4, 3, 13)], (0, 0, 1)),
           ("MRC12-1609", 5, (2e9, 1048576, 1), [(4, 3, 8), (7, 3, 12)], (0.6, 0, 0.8)),
           ("BG1-1609", 0, (1e8, 1048576, 1), [(1, 2, 20)], (0, 1, 0)),
           ("Q11-1609", 1, (-1e9, 1048576, 1), [(2, 0, 22), (2, 4, 22)], (1, 0, 0)),
           ("P12-1609", 1, (-1e9, 1048576, 1), [(0, 1, 24), (0, 1, 28)], (0, 0, 1)),
           ("Cz-1609", 9, (1, 4e6, 1), [(3, 4, 9)], (0, 0, 0)),
           ("UPPT001", 11, (1, 1, 1), [], (0, 0, 0)),
           ("SCLK01-177", 17, (1, 12000, 1), [], (0, 0, 0)),
           ("UADC001-1609", 18, (1, 1e5, 1), [], (0, 0, 0))]
TRIGGER = [0, 0, 4, 4, 0, 0, 2, 0, 0, 6, 6, 6, 1, 0, 0, 0, 3, 3]


def coil(place, direction):
    return struct.pack(">8dh6xd", *place, 0, *direction, 0, 0, 0)


def res4():
    b = b"MEG42RS\0" + bytes(768) + struct.pack(">h255s255s", 0, b"14:05:09", b"11-Nov-2008")
    b += struct.pack(">ih2xddh2xihhi", SAMPLES, CHANNELS, RATE, SAMPLES / RATE, TRIALS, BEFORE, 0, 0, 0)
    b += bytes(1360 - len(b)) + struct.pack(">32s256s32s32s32s32s60si4x", b"", b"Doe, Jane", b"", b"", b"S017", b"Ms Operator", b"", 4)
    b += b"run\0" + struct.pack(">hdiihdiihdd", 2, 300, 0, 1, 0, 0.5, 0, 2, 2, 0, 0)
    b += b"".join(name.encode().ljust(32, b"\0") for name, *_ in SENSORS)
    for name, kind, gains, coils, direction in SENSORS:
        b += struct.pack(">hhi4dhhi", kind, 0, 0, *gains, 0, len(coils), 3 if kind == 5 else 0, 0)
        table = b"".join(coil(c, direction) for c in coils)
        head = b"".join(coil(to_head(c, True), to_head(direction, False)) for c in coils) if kind != 9 else b""
        b += table.ljust(640, b"\0") + head.ljust(640, b"\0")
    b += struct.pack(">h", 2)  # coefficients of the third-order gradiometer ("G3BR"); nothing but MNE's check of them wants any
    for name in ("MLC11-1609", "MRC12-1609"):
        b += struct.pack(">32s4s4xh31s", name.encode(), b"G3BR", 1, b"BG1-1609").ljust(42 + 31 * 50, b"\0") + struct.pack(">d", 0.5).ljust(400, b"\0")
    return b


def sample(channel, trial, k):
    at = trial * SAMPLES + k
    if channel == 6:
        return TRIGGER[at]
    if channel == 7:
        return 120000 + 10 * (at + (GAP if trial == 2 else 0))
    return (channel + 1) * 1000003 * (k - 2) + trial * 70000 + channel


def meg4(trials):
    return b"MEG41CP\0" + b"".join(struct.pack(">i", sample(c, t, k)) for t in trials for c in range(CHANNELS) for k in range(SAMPLES))


def hc():
    out = ""
    coils = [("nasion", (10, 0, 0)), ("left ear", (0.5, 7.5, 0)), ("right ear", (-0.5, -7.5, 0))]
    for state, frame in (("standard", "dewar"), ("measured", "dewar"), ("measured", "head")):
        for name, head in coils:
            p = list(head) if frame == "head" else [x + (state == "standard") for x in to_dewar(head)]
            out += "%s %s coil position relative to %s (cm):\n\tx = %.8f\n\ty = %.8f\n\tz = %.8f\n" % (state, name, frame, *p)
    return out.encode()


LIST = "NUMBER OF SAMPLES:\n%d\nLIST OF SAMPLES:\nTRIAL NUMBER\t\tTIME FROM SYNC POINT (in seconds)\n"
ROW = "                  +%d\t\t\t\t     %s\n"
MARKERS = ("PATH OF DATASET:\n/data/Doe_Jane.ds\n\n\nNUMBER OF MARKERS:\n2\n\n\nCLASSGROUPID:\n+3\nNAME:\nvisual\nCOMMENT:\n\nCOLOR:\nblue\n"
           "EDITABLE:\nYes\nCLASSID:\n+1\n" + LIST % 2 + ROW % (0, "+0.0012") + ROW % (2, "-0.0016") + "\n\nCLASSGROUPID:\n+3\nNAME:\nbutton\n"
           "COMMENT:\n\n" + LIST % 1 + ROW % (1, "+0") + "\n\n")

FILES = {"x.res4": res4(), "x.meg4": meg4([0, 1]), "x.1_meg4": meg4([2]), "x.hc": hc(), "x.eeg": b"1\tCz-1609\t1.5\t-0.5\t12.25\n2 nasion 10 0 0\n",
         "BadChannels": b"MRC12\n", "MarkerFile.mrk": MARKERS.encode(), "bad.segments": b"1\t0.0005\t0.0015\n"}


def moved(onset):
    return onset + (GAP / RATE if onset * RATE >= 2 * SAMPLES - 0.5 else 0)


def main():
    with tempfile.TemporaryDirectory() as folder:
        ds = os.path.join(folder, "x.ds")
        os.mkdir(ds)
        for name, content in FILES.items():
            with open(os.path.join(ds, name), "wb") as f:
                f.write(content)
        raw = mne.io.read_raw_ctf(ds, preload=True)
        out = []
        row = make_meg.describe(out, "x.ds", raw, 1, False)
        events = mne.find_events(raw, stim_channel="UPPT001", shortest_event=1)
        texts = sorted((moved(a["onset"]), a["duration"], "bad segment" if a["description"] == "bad_1" else a["description"])
                       for a in raw.annotations)
    out[-2] = "static const golden_event golden_0_events[] = {%s};" % ", ".join(
        '{%d, "%d", -1}' % (e[0] + (GAP if e[0] >= 2 * SAMPLES else 0), e[2]) for e in events)
    out[-1] = "static const golden_text golden_0_texts[] = {%s};" % ", ".join(
        "{%s, %s, %s}" % (make_meg.number(o), make_meg.number(d), make_meg.text(t)) for o, d, t in texts)
    head = row[:row.index(" 0, golden_0_events")]
    row = head + " %d, golden_0_events, %d, golden_0_texts}" % (len(events), len(texts))
    out.append("static const char *const CTF_DIGESTS[] = {%s};" % ", ".join('"%s"' % hashlib.sha256(c).hexdigest() for c in FILES.values()))
    with open(os.path.join(make_meg.HERE, "ctf_golden.h"), "w") as f:
        f.write("/* Made by make_ctf.py with MNE %s. */\n" % mne.__version__)
        f.write("\n".join(out))
        f.write("\nstatic const golden_file CTF_GOLDEN[] = {\n%s};\n" % row)
    corpus = os.path.join(make_meg.HERE, "..", "corpus", "ctf")
    os.makedirs(corpus, exist_ok=True)
    files = dict(FILES, **{"ClassFile.cls": b"NUMBER OF CLASSES:\n1\nNAME:\nBAD\nNUMBER OF TRIALS:\n1\nLIST OF TRIALS:\nTRIAL NUMBER\n +1\n"})
    with open(os.path.join(corpus, "nine_channels"), "wb") as f:
        f.write("".join("%s %d\n" % (n, len(c)) for n, c in files.items()).encode() + b"\n" + b"".join(files.values()))


if __name__ == "__main__":
    main()
