#!/usr/bin/env python3
"""Reference values of the position encodings, from numpy: writes position_golden.h beside this file.

Run:  python3 tests/golden/make_position.py
Tokens, places and parameters are made by formulas that the test repeats; the encodings are written from their definitions
(signals_and_probes S7), without a look at the C code.
"""
import math
import os
import numpy as np

here = os.path.dirname(os.path.abspath(__file__))
out = open(os.path.join(here, "position_golden.h"), "w")

# (sample, series, channel id, kind, step)
TOKENS = [(0, 0, 0, "EEG", 0), (0, 0, 0, "EEG", 1), (0, 1, 2, "EEG", 1), (0, 2, 3, "MAG", 0), (0, 3, 1, "MAG", 2),
          (0, 4, 4, "GRAD", 2), (1, 0, 2, "EEG", 3), (1, 1, 0, "EEG", 0), (1, 1, 0, "EEG", 11)]


def place(sample, series):
    a = 1.3 * series + 0.7 * sample
    return [float(np.float32(v)) for v in (0.08 * math.cos(a), 0.07 * math.sin(a), 0.03 + 0.01 * series - 0.02 * sample)]


def direction(series):
    v = np.array([math.cos(2.1 * series), math.sin(2.1 * series), 0.5])
    v /= math.sqrt((v * v).sum())
    return [float(np.float32(x)) for x in v]


def parameter(name, shape, norm=False):
    n = int(np.prod(shape))
    v = 0.4 * np.sin(0.7 * np.arange(n) + 0.11 * len(name))
    return ((1.0 if norm else 0.0) + v).reshape(shape)


def erf(x):
    return np.vectorize(math.erf)(x)


def gelu(x):
    return x * 0.5 * (1 + erf(x / math.sqrt(2)))


def layernorm(x, name):
    c = x.shape[1]
    mean = x.mean(1, keepdims=True)
    var = ((x - mean) ** 2).mean(1, keepdims=True)
    return (x - mean) / np.sqrt(var + 1e-6) * parameter(name + ".weight", (c,), True) + parameter(name + ".bias", (c,))


def phases(q, w, n, d, by_norm):
    ks = [(kx, ky, kz, kt) for kx in range(n) for ky in range(n) for kz in range(n) for kt in range(n)]
    if by_norm:
        ks = sorted(ks, key=lambda k: sum(v * v for v in k))  # stable: ties by index
    ks = ks[:d // 2]
    return np.array([[sum(k[a] * w[a] * row[a] for a in range(4)) for k in ks] for row in q])


def both(phi):
    return np.concatenate([np.cos(phi), np.sin(phi)], 1)


def fourier4d(d, n, period):
    q = [[v + 0.4 for v in place(t[0], t[1])] + [t[4]] for t in TOKENS]
    return both(phases(q, [2 * math.pi / 1.8] * 3 + [2 * math.pi / period], n, d, True))


def reve2025(d, n, scale=0.1):
    q = [[v + 0.4 for v in place(t[0], t[1])] + [scale * t[4] + 0.4] for t in TOKENS]
    return both(phases(q, [2 * math.pi / 1.8] * 4, n, d, False))


def learned4d(d):
    x = np.array([place(t[0], t[1]) + [t[4]] for t in TOKENS])
    return layernorm(gelu(x @ parameter("embed.position.learned4d.weight", (d, 4)).T), "embed.position.learned4d.norm")


def sensor6d(d):
    six = []
    for t in TOKENS:
        sensors = sorted({(u[1]) for u in TOKENS if u[0] == t[0] and u[3] == t[3]})
        p = np.array([place(t[0], s) for s in sensors])
        centre = p.mean(0)
        spread = math.sqrt(3 * ((p - centre) ** 2).sum(1).mean())
        here_ = (np.array(place(t[0], t[1])) - centre) / spread if spread > 0 else np.zeros(3)
        six.append(list(here_) + (direction(t[1]) if t[3] != "EEG" else [0, 0, 0]))
    x = np.array(six)
    widths = [6, 128, 256, d]
    for i in range(3):
        name = "embed.position.sensor6d.fc%d" % (i + 1)
        x = x @ parameter(name + ".weight", (widths[i + 1], widths[i])).T + parameter(name + ".bias", (widths[i + 1],))
        if i < 2:
            x = gelu(x)
    types = parameter("embed.position.sensor6d.type.weight", (3, d))
    return x + types[[["EEG", "MAG", "GRAD"].index(t[3]) for t in TOKENS]]


def sinusoid(u, d, base):
    w = np.array([base ** (-k / (d / 2)) for k in range(d // 2)])
    return np.concatenate([np.sin(u * w), np.cos(u * w)])


def sjepa(d, r, longest):
    c_s = 6 * (5 * d // 64)
    table = parameter("embed.position.sjepa.channel.weight", (5, c_s))
    rows = []
    for t in TOKENS:
        space = np.concatenate([sinusoid((v + r) * 100, c_s // 3, 2 * r * 100) for v in place(t[0], t[1])])
        rows.append(np.concatenate([space + table[t[2]], sinusoid(t[4], d - c_s, longest)]))
    return np.array(rows)


def table(name, values):
    values = np.asarray(values)
    out.write("static const double %s[%d][%d] = {\n" % ((name,) + values.shape))
    for row in values:
        out.write("    {" + ",\n     ".join(", ".join("%.16g" % v for v in row[i:i + 5]) for i in range(0, len(row), 5)) + "},\n")
    out.write("};\n")


out.write("/* Made by make_position.py (numpy %s); do not edit. */\n" % np.__version__)
table("golden_fourier4d", fourier4d(16, 2, 12))
table("golden_fourier4d_wide", fourier4d(40, 3, 20)[[4, 8]])
table("golden_reve2025", reve2025(16, 3))
table("golden_reve2025_scaled", reve2025(16, 2, 0.05)[[4, 8]])
table("golden_reve", layernorm(reve2025(16, 3) + learned4d(16), "embed.position.norm"))
table("golden_learned4d", learned4d(8))
table("golden_sensor6d", sensor6d(8))
table("golden_sjepa", sjepa(14, 0.2, 12))
table("golden_sjepa_64", sjepa(64, 0.2, 12)[[4]])
