#!/usr/bin/env python3
"""Reference values of band powers and neurodynamics, from numpy and scipy: writes eeg_golden.h beside this file.

Run:  python3 tests/golden/make_eeg.py
The test signals are made of integers (a linear congruential generator) and sines, so that C has the same ones.
"""
import os
import numpy as np
import scipy
from scipy import signal

here = os.path.dirname(os.path.abspath(__file__))
out = open(os.path.join(here, "eeg_golden.h"), "w")
out.write("/* Made by make_eeg.py (numpy %s, scipy %s); do not edit. */\n" % (np.__version__, scipy.__version__))

BANDS6 = [(1, 4), (4, 8), (8, 13), (13, 20), (20, 30), (30, 45)]
BANDS5 = [(1, 4), (4, 8), (8, 13), (13, 30), (30, 45)]


def wave(channels, n, rate, quantum):
    """Noise that remembers, a shared alpha, theta with gamma riding on it, a drift; rounded to `quantum` if not 0."""
    x, state = np.zeros((channels, n)), 12345
    for c in range(channels):
        level = 0.0
        for i in range(n):
            state = (state * 1103515245 + 12345) % 2**31
            level = 0.9 * level + 8.0 * (state / 2**31 - 0.5)
            t = i / rate
            theta = np.sin(2 * np.pi * 6.0 * t + 0.4 * c)
            x[c, i] = (level + 3.0 * np.sin(2 * np.pi * 10.0 * t + 0.7 * c) * (0.3 + 0.2 * c) + 2.0 * theta
                       + 0.8 * (1.0 + theta) * np.sin(2 * np.pi * 37.0 * t + c) + 0.05 * (c - 1.5) * i / rate + 10.0 * c)
            if quantum:
                x[c, i] = np.floor(x[c, i] / quantum + 0.5) * quantum
    return x


def table(name, values):
    values = np.ravel(values)
    out.write("static const double %s[%d] = {\n" % (name, len(values)))
    for i in range(0, len(values), 4):
        out.write("    " + ", ".join("%.17g" % v if np.isfinite(v) else "NAN" for v in values[i:i + 4]) + ",\n")
    out.write("};\n")


def density(x, rate):
    n = int(np.floor(2 * rate + 0.5))
    return signal.welch(x, rate, "hann", n, n // 2, detrend="linear", scaling="density")


def powers(x, rate, bands):
    f, p = density(x, rate)
    return np.array([p[(f >= a) & (f < b)].sum() * (f[1] - f[0]) if b <= rate / 2 else np.nan for a, b in bands])


def analytic(x, rate, low, high):
    y = signal.detrend(x)
    n = len(y)
    spectrum = np.fft.fft(y)
    f = np.arange(n) * rate / n
    spectrum[~((f >= low) & (f < high))] = 0
    z = np.fft.ifft(2 * spectrum)
    drop = n // 10
    return z[drop:n - drop]


def modulation(x, rate):
    phase, amplitude = np.angle(analytic(x, rate, 4, 8)), np.abs(analytic(x, rate, 30, 45))
    edges = np.linspace(-np.pi, np.pi, 19)
    p = np.array([amplitude[(phase >= a) & (phase < b)].mean() for a, b in zip(edges[:-1], edges[1:])])
    p /= p.sum()
    return (np.log(18) + (p * np.log(p)).sum()) / np.log(18)


def permutation(x):
    patterns = np.argsort(np.lib.stride_tricks.sliding_window_view(x, 3), axis=1, kind="stable")
    _, counts = np.unique(patterns @ [9, 3, 1], return_counts=True)
    p = counts / counts.sum()
    return -(p * np.log(p)).sum() / np.log(6)


def mobility(y):
    return np.sqrt(np.var(np.diff(y)) / np.var(y))


def channel(x, rate):
    p = powers(x, rate, BANDS5)
    y = signal.detrend(x)
    reach = rate / 2 >= 45
    return np.concatenate([np.log10(p + 1e-12), p / p.sum(),
                           [modulation(x, rate) if reach else np.nan, permutation(x), mobility(y),
                            mobility(np.diff(y)) / mobility(y)]])


def locking(x, rate):
    rows = []
    for a in range(len(x)):
        for b in range(a + 1, len(x)):
            for low, high in BANDS5:
                if high > rate / 2:
                    rows.append(np.nan)
                    continue
                u, v = analytic(x[a], rate, low, high), analytic(x[b], rate, low, high)
                rows.append(abs(np.exp(1j * (np.angle(u) - np.angle(v))).mean()))
    return rows


def coherence(x, rate):
    rows, n = [], int(np.floor(2 * rate + 0.5))
    for a in range(len(x)):
        for b in range(a + 1, len(x)):
            f, c = signal.coherence(x[a], x[b], rate, "hann", n, n // 2, detrend="linear")
            rows += [c[(f >= low) & (f < high)].mean() if high <= rate / 2 else np.nan for low, high in BANDS5]
    return rows


CASES = [("plain", 4, 1000, 200.0, 0), ("odd", 3, 777, 125.0, 0), ("coarse", 2, 900, 128.0, 2.0), ("slow", 2, 400, 64.0, 0)]
for name, channels, n, rate, quantum in CASES:
    x = wave(channels, n, rate, quantum)
    table("eeg_%s_bands" % name, [np.log10(powers(v, rate, BANDS6) + 1e-12) for v in x])
    table("eeg_%s_channels" % name, [channel(v, rate) for v in x])
    table("eeg_%s_locking" % name, locking(x, rate))
    table("eeg_%s_coherence" % name, coherence(x, rate))
out.write("typedef struct eeg_golden { const char *name; int channels, n; double rate, quantum; "
          "const double *bands, *values, *locking, *coherence; } eeg_golden;\n")
out.write("static const eeg_golden EEG_GOLDEN[] = {\n")
for name, channels, n, rate, quantum in CASES:
    out.write('    {"%s", %d, %d, %g, %g, eeg_%s_bands, eeg_%s_channels, eeg_%s_locking, eeg_%s_coherence},\n'
              % (name, channels, n, rate, quantum, name, name, name, name))
out.write("};\n")
