#!/usr/bin/env python3
"""Reference values of modalities/signal/spectral.h, from numpy and scipy: writes spectral_golden.h beside this file.

The patch is made of integers (a linear congruential generator), so that C has the same one.
"""
import os
import numpy as np
import scipy
from scipy import signal

here = os.path.dirname(os.path.abspath(__file__))
out = open(os.path.join(here, "spectral_golden.h"), "w")
P, RATE = 50, 125.0


def wave(n):
    x, state = np.zeros(n), 4711
    for i in range(n):
        state = (state * 1103515245 + 12345) % 2**31
        x[i] = np.float32(state / 2**31 - 0.5 + ((i * 13) % 50) / 25.0)
    return x


def frame_values(x, valid, hann, floor):
    n = len(x)
    w = signal.get_window("hann", n) if hann else np.ones(n)
    u = np.where(valid, (x - x[valid].mean()) * w, 0)
    a = 2 * np.abs(np.fft.rfft(u)) / w[valid].sum()
    if n % 2 == 0:
        a[-1] /= 2
    return np.log(a + floor)[1:], np.fft.rfftfreq(n, 1 / RATE)[1:]


def case(name, frame, hop, hann, floor, low, high, per_patch, holes):
    x, valid = wave(P), np.ones(P, bool)
    valid[holes] = False
    rows = []
    for s in range(0, P - frame + 1, hop):
        y, f = frame_values(x[s:s + frame], valid[s:s + frame], hann, floor)
        rows.append(y[(f >= low) & (f <= (high or RATE / 2))])
    y = np.concatenate(rows)
    if per_patch:
        y = (y - y.mean()) / np.sqrt(y.var(ddof=1) + 1e-6)
    out.write("static const double %s[%d] = {\n" % (name, len(y)))
    for i in range(0, len(y), 4):
        out.write("    " + ", ".join("%.17g" % v for v in y[i:i + 4]) + ",\n")
    out.write("};\n")


out.write("/* Made by make_spectral.py (numpy %s, scipy %s); do not edit. */\n" % (np.__version__, scipy.__version__))
case("spectral_hann", 50, 50, True, 1e-3, 0, 0, False, [])
case("spectral_boxcar", 50, 50, False, 0.0, 5, 40, False, [])
case("spectral_holes", 50, 50, True, 1e-3, 0, 0, False, [3, 4, 5, 6, 20, 49])
case("spectral_patch", 50, 50, True, 1e-3, 0, 30, True, [])
case("spectral_stft", 21, 10, True, 1e-2, 0, 0, False, [])
