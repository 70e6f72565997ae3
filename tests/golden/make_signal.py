#!/usr/bin/env python3
"""Reference values of the signal conditioning, from numpy and scipy: writes signal_golden.h beside this file.

Run:  python3 tests/golden/make_signal.py [DIRECTORY_OF_cinc2017_af]
The test signal is made of integers (a linear congruential generator) and exact products, so that C has the same one.
"""
import os
import sys
import numpy as np
from scipy import signal

here = os.path.dirname(os.path.abspath(__file__))
out = open(os.path.join(here, "signal_golden.h"), "w")


def wave(n):
    x, state = np.zeros(n), 12345
    for i in range(n):
        state = (state * 1103515245 + 12345) % 2**31
        x[i] = state / 2**31 - 0.5 + 3.0 + ((i * 7) % 100) / 50.0
    return x


def table(name, values):
    out.write("static const double %s[%d] = {\n" % (name, len(values)))
    for i in range(0, len(values), 4):
        out.write("    " + ", ".join("%.17g" % v for v in values[i:i + 4]) + ",\n")
    out.write("};\n")


def odd(n):
    return n + 1 - n % 2


def low_pass(total, fs, cutoff, transition):
    m = min(odd(int(round(3.3 * fs / transition))), total)
    h = np.zeros(total)
    k = (total - m) // 2
    h[k:k + m] = signal.firwin(m, cutoff, window="hamming", pass_zero=True, fs=fs)
    return h


def band(fs, low, high):
    edges = []
    if low:
        edges.append(min(max(0.25 * low, 2.0), low))
    if high:
        edges.append(min(max(0.25 * high, 2.0), fs / 2.0 - high))
    total = odd(int(np.ceil(3.3 * fs / min(edges))))
    h = np.zeros(total)
    if high:
        h += low_pass(total, fs, high + edges[-1] / 2, edges[-1])
    else:
        h[total // 2] = 1.0
    if low:
        h -= low_pass(total, fs, low - edges[0] / 2, edges[0])
    return h


def notch(fs, f):
    total = odd(int(np.ceil(3.3 * fs / 0.5)))
    h = np.zeros(total)
    h[total // 2] = 1.0
    return h - low_pass(total, fs, f + f / 400 + 0.25, 0.5) + low_pass(total, fs, f - f / 400 - 0.25, 0.5)


def apply(h, x):
    n, m = len(x), len(h) // 2
    left = 2 * x[0] - x[1:][::-1]
    right = 2 * x[-1] - x[:-1][::-1]
    e = np.concatenate([np.zeros(m), left, x, right, np.zeros(m)])
    y = np.convolve(e, h, mode="full")
    first = m + (n - 1) + m  # the kernel's centre
    return y[first:first + n]


out.write("/* Made by make_signal.py (numpy %s, scipy %s); do not edit. */\n" % (np.__version__, __import__("scipy").__version__))
out.write("typedef struct fir_golden { double rate, low, high, notch; int n, length, tap_step, step; const double *taps, *y; } "
          "fir_golden;\n")
rows = []
for i, (fs, low, high, f, n) in enumerate([(300, 0.5, 40, 0, 3000), (360, 5, 15, 0, 2000), (100, 1, 0, 0, 700),
                                           (250, 0, 30, 0, 900), (250, 0, 0, 50, 2500), (500, 0.5, 40, 50, 1500),
                                           (300, 0.5, 40, 0, 50), (257, 0.7, 45.5, 0, 1)]):
    h = band(fs, low, high) if low or high else None
    if f:
        h = notch(fs, f) if h is None else np.convolve(h, notch(fs, f))
    x = wave(n)
    y = apply(h, x)
    tap_step, step = max(1, len(h) // 24), max(1, n // 24)
    table("fir%d_taps" % i, h[::tap_step])
    table("fir%d_y" % i, y[::step])
    rows.append("{%g, %g, %g, %g, %d, %d, %d, %d, fir%d_taps, fir%d_y}" % (fs, low, high, f, n, len(h), tap_step, step, i, i))
out.write("static const fir_golden FIR_GOLDEN[] = {%s};\n" % ",\n    ".join(rows))

out.write("typedef struct resample_golden { int up, down, n, n_out, step; const double *y; } resample_golden;\n")
for name, cases in (("poly", [(1, 3, 1000), (5, 18, 1200), (1, 5, 777), (4, 1, 100), (100, 257, 1000), (128, 125, 400), (1, 3, 2)]),
                    ("fft", [(1, 3, 900), (5, 2, 400), (2, 3, 303), (3, 4, 400)])):
    rows = []
    for i, (up, down, n) in enumerate(cases):
        x = wave(n)
        y = signal.resample_poly(x, up, down, window=("kaiser", 5.0)) if name == "poly" else signal.resample(x, n * up // down)
        step = max(1, len(y) // 24)
        table("%s%d_y" % (name, i), y[::step])
        rows.append("{%d, %d, %d, %d, %d, %s%d_y}" % (up, down, n, len(y), step, name, i))
    out.write("static const resample_golden %s_GOLDEN[] = {%s};\n" % (name.upper(), ",\n    ".join(rows)))

out.write("typedef struct iir_golden { int order; double rate, low, high; int n, pad, step; const double *y; } iir_golden;\n")
rows = []
for i, (order, fs, low, high, n, pad) in enumerate([(4, 300, 0.5, 40, 2000, 500), (4, 250, 1, 0, 900, 100), (3, 250, 0, 30, 900, 100),
                                                    (1, 100, 0, 5, 50, 20), (3, 360, 5, 15, 800, 799)]):
    kind = "bandpass" if low and high else "highpass" if low else "lowpass"
    sos = signal.butter(order, [low, high] if low and high else low or high, kind, fs=fs, output="sos")
    y = signal.sosfiltfilt(sos, wave(n), padtype="odd", padlen=pad)
    step = max(1, n // 24)
    table("iir%d_y" % i, y[::step])
    rows.append("{%d, %g, %g, %g, %d, %d, %d, iir%d_y}" % (order, fs, low, high, n, pad, step, i))
out.write("static const iir_golden IIR_GOLDEN[] = {%s};\n" % ",\n    ".join(rows))

# One window of a real record: millivolts, 0.5-40 Hz at the native 300 Hz, 100 Hz, seconds 5 to 15, z-scored, clipped at 8.
data = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.environ["SONDE_DATA"], "ecg", "cinc2017_af")
for name in ("A00001", "A00004"):
    raw = np.frombuffer(open(os.path.join(data, name + ".mat"), "rb").read()[24:], "<i2").astype(float) / 1000.0
    y = signal.resample_poly(apply(band(300, 0.5, 40), raw), 1, 3, window=("kaiser", 5.0))[500:1500]
    z = np.clip((y - y.mean()) / y.std(), -8, 8)
    table(name + "_window", z[::20])
out.close()
