#!/usr/bin/env python3
"""The layout of electrodes once more, independently, and how far it lies from a published template.

Writes layout_deviation.tsv beside this file: name, direction from the centre of the head sphere (as layout.h defines it,
here by intersecting planes with the sphere), and the angle in degrees to the same electrode of standard_1005 of
MNE-Python, seen from the centre of the sphere fitted to that template in its own head frame; n/a where it has none.

Run:  python3 tests/golden/make_layout.py      (needs MNE-Python for its montage file)
"""
import os
import re
import numpy as np

Q = np.radians(115.0)
ROWS = dict(N=0, NFp=5, Fp=10, AFp=15, AF=20, AFF=25, F=30, FFT=35, FFC=35, FT=40, FC=40, FTT=45, FCC=45, T=50, C=50, TTP=55,
            CCP=55, TP=60, CP=60, TPP=65, CPP=65, P=70, PPO=75, PO=80, POO=85, O=90, OI=95, I=100)
HEIGHTS = dict(Fp=10, O=10, N=0, I=0, NFp=5, OI=5)  # rows whose numbered electrodes lie on a contour


def sphere(polar, azimuth):
    return np.array([np.sin(polar) * np.sin(azimuth), np.sin(polar) * np.cos(azimuth), np.cos(polar)])


def midline(a):
    return sphere(Q * abs(1 - a / 50), 0.0 if a <= 50 else np.pi)


def contour(a, height, side):
    return sphere(Q * (1 - height / 50), side * np.radians(1.8 * a))


def direction(name):
    ears = {"A1": (50, -1), "A2": (50, 1), "M1": (60, -1), "M2": (60, 1)}
    if name in ears:
        return contour(ears[name][0], -5, ears[name][1])
    row, place = re.match(r"^([A-Za-z]+?)(z|\d+h?)$", name).groups()
    a = ROWS[row]
    if place == "z":
        return midline(a)
    number, half = int(place.rstrip("h")), place.endswith("h")
    side = -1 if number % 2 else 1
    if row in HEIGHTS:
        front = a <= 10
        return contour((5 if half else 10) if front else (95 if half else 90), HEIGHTS[row], side)
    if number in (9, 10):
        return contour(a, 5 if half else 0, side)
    eighths = {1: 2, 3: 4, 5: 6, 7: 8}[number if number % 2 else number - 1] - half
    # The circle through three points of the sphere, its centre the foot of the origin on their plane.
    left, top, right = contour(a, 10, -1), midline(a), contour(a, 10, 1)
    normal = np.cross(left - top, right - top)
    normal /= np.linalg.norm(normal)
    centre = normal * (normal @ top)
    axis = top - centre
    end = (right if side > 0 else left) - centre
    across = end - axis * (end @ axis) / (axis @ axis)
    across *= np.linalg.norm(axis) / np.linalg.norm(across)
    angle = np.arctan2(end @ across, end @ axis) * eighths / 8
    return centre + np.cos(angle) * axis + np.sin(angle) * across


def template():
    import mne
    path = os.path.join(os.path.dirname(mne.channels.__file__), "data", "montages", "standard_1005.elc")
    lines = open(path).read().split("\n")
    start, end = lines.index("Positions"), lines.index("Labels")
    points = np.array([[float(v) for v in line.split()] for line in lines[start + 1:end]]) / 1000
    points = dict(zip([line.strip() for line in lines[end + 1:] if line.strip()], points))
    left, right, nasion = points.pop("LPA"), points.pop("RPA"), points["Nz"]
    x = (right - left) / np.linalg.norm(right - left)
    origin = left + x * ((nasion - left) @ x)
    y = (nasion - origin) / np.linalg.norm(nasion - origin)
    turn = np.array([x, y, np.cross(x, y)])
    points = {k: turn @ (v - origin) for k, v in points.items()}
    scalp = np.array([v for k, v in points.items() if k not in ("A1", "A2", "M1", "M2", "T3", "T4", "T5", "T6", "Nz")])
    solution = np.linalg.lstsq(np.c_[2 * scalp, np.ones(len(scalp))], (scalp**2).sum(1), rcond=None)[0]
    centre, radius = solution[:3], np.sqrt(solution[3] + solution[:3] @ solution[:3])
    print("template: centre of the fitted sphere (%.1f, %.1f, %.1f) mm, radius %.1f mm" % (*(centre * 1e3), radius * 1e3))
    return {k: (v - centre) / np.linalg.norm(v - centre) for k, v in points.items()}


def names():
    result = []
    for row, a in ROWS.items():
        low = row in ("T", "TTP", "TP", "TPP", "FT", "FTT", "FFT")
        high = row in ("C", "CCP", "CP", "CPP", "FC", "FCC", "FFC")
        if not low:
            result.append(row + "z")
        for n in (1, 2) if row in HEIGHTS else (9, 10, 7, 8) if low else (5, 6, 3, 4, 1, 2) if high else range(1, 11):
            result += ["%s%d" % (row, n), "%s%dh" % (row, n)]
    return result + ["A1", "A2", "M1", "M2"]


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    published, deviations = template(), {}
    with open(os.path.join(here, "layout_deviation.tsv"), "w") as out:
        out.write("name\tx\ty\tz\tdeviation_deg\n")
        for name in names():
            u = direction(name)
            text = "n/a"
            if name in published:
                deviations[name] = np.degrees(np.arccos(np.clip(u @ published[name], -1, 1)))
                text = "%.2f" % deviations[name]
            out.write("%s\t%.10f\t%.10f\t%.10f\t%s\n" % (name, *u, text))
    values = np.array(list(deviations.values()))
    worst = sorted(deviations, key=deviations.get)[::-1][:6]
    print("%d electrodes, %d compared: mean %.2f, median %.2f, largest %.2f degrees (%s)"
          % (len(names()), len(values), values.mean(), np.median(values), values.max(), " ".join(worst)))
    system = [k for k in deviations if k in "Fp1 Fpz Fp2 F7 F3 Fz F4 F8 T7 C3 Cz C4 T8 P7 P3 Pz P4 P8 O1 Oz O2".split()]
    values = np.array([deviations[k] for k in system])
    print("10-20 alone: mean %.2f, largest %.2f (%s)" % (values.mean(), values.max(), max(system, key=deviations.get)))


main()
