#!/usr/bin/env python3
"""Writes tests/golden/scores_golden.h: metrics of scikit-learn on small inputs that test_scores.c repeats by formula."""
import os

import numpy as np
import sklearn.metrics as M


def noise(n, d, seed):
    i, j = np.arange(n)[:, None].astype(np.int64), np.arange(d)[None, :].astype(np.int64)
    v = (i * 7919 + j * 104729 + i * j * 31 + seed * 613) * 2654435761 % 4294967296
    return v / 4294967296.0


NAMES = ["accuracy", "balanced_accuracy", "kappa", "f1_weighted", "f1_macro", "auroc", "auroc_macro", "average_precision",
         "pr_auc", "brier", "ece", "r2", "mae", "rmse"]


def trapezoid(y, s, w):
    p, r, _ = M.precision_recall_curve(y, s, sample_weight=w)
    return M.auc(r, p)


def ranked(hot, s, w, classes):
    ok = [k for k in classes if 0 < (hot[:, k] * w).sum() < w.sum()]
    mean = lambda f: np.mean([f(hot[:, k], s[:, k]) for k in ok])
    return {"auroc_macro": mean(lambda y, v: M.roc_auc_score(y, v, sample_weight=w)),
            "average_precision": mean(lambda y, v: M.average_precision_score(y, v, sample_weight=w)),
            "pr_auc": mean(lambda y, v: trapezoid(y, v, w))}


def single(y, s, w):
    k = s.shape[1]
    pred, hot, out = s.argmax(1), np.eye(k)[y], {}
    out["accuracy"] = M.accuracy_score(y, pred, sample_weight=w)
    out["balanced_accuracy"] = np.mean([M.recall_score(y == c, pred == c, sample_weight=w) for c in range(k) if w[y == c].sum() > 0])
    out["kappa"] = M.cohen_kappa_score(y, pred, sample_weight=w)
    keep = w > 0
    out["f1_weighted"] = M.f1_score(y[keep], pred[keep], average="weighted", sample_weight=w[keep])
    out["f1_macro"] = M.f1_score(y[keep], pred[keep], average="macro", sample_weight=w[keep])
    out.update(ranked(hot, s, w, [1] if k == 2 else range(k)))
    if k == 2:
        out["auroc"] = M.roc_auc_score(y, s[:, 1], sample_weight=w)
        out["brier"] = M.brier_score_loss(y, s[:, 1], sample_weight=w)
    else:
        out["brier"] = np.average(((s - hot) ** 2).sum(1), weights=w)
    top, bins = s.max(1), np.ceil(s.max(1) * 15).astype(int)
    out["ece"] = sum(abs((w * ((pred == y) - top))[bins == b].sum()) for b in range(16)) / w.sum()
    return out


def multi(hot, s, w):
    out = ranked(hot, s, w, range(s.shape[1]))
    out["f1_macro"] = M.f1_score(hot, s > 0.5, average="macro", sample_weight=w)
    out["f1_weighted"] = M.f1_score(hot, s > 0.5, average="weighted", sample_weight=w)
    out["brier"] = np.average(((s - hot) ** 2).mean(1), weights=w)
    return out


def regression(y, p, w):
    return {"r2": M.r2_score(y, p, sample_weight=w), "mae": M.mean_absolute_error(y, p, sample_weight=w),
            "rmse": M.mean_squared_error(y, p, sample_weight=w) ** 0.5}


def main():
    rows = []
    for task, n, k, seed, weighted in [(0, 50, 2, 1, 0), (0, 50, 2, 2, 1), (1, 70, 4, 3, 0), (1, 70, 4, 4, 1), (1, 40, 5, 5, 0),
                                       (2, 60, 3, 6, 0), (2, 60, 3, 7, 1), (3, 30, 1, 8, 0), (3, 30, 1, 9, 1)]:
        u = noise(n, k, seed)
        w = (np.arange(n) * 5 % 4).astype(float) if weighted else np.ones(n)
        draw = noise(n, k, seed + 100)
        if task < 2:
            shown = k - 1 if seed == 5 else k  # seed 5: the last class never occurs
            y = (draw[:, 0] * shown).astype(int)
            s = np.round(u * 8) + 1 + 3.0 * (np.arange(k)[None] == y[:, None])  # many ties
            s = s / s.sum(1, keepdims=True)
            out = single(y, s, w)
        elif task == 2:
            hot = (draw > 0.6).astype(float)
            s = np.round((u + hot) / 2 * 10) / 10
            out = multi(hot, s, w)
        else:
            out = regression(draw[:, 0] * 10, u[:, 0] * 4 + draw[:, 0] * 6, w)
        v = ", ".join("%.17g" % out[m] if m in out else "NAN" for m in NAMES)
        rows.append("    {%d, %d, %d, %d, %d,\n     {%s}}," % (task, n, k, seed, weighted, v))
    text = "/* Made by make_scores.py (scikit-learn); do not edit. */\n"
    text += "typedef struct scores_case { int task, n, k, seed, weighted; double value[%d]; } scores_case;\n" % len(NAMES)
    text += "static const scores_case SCORES_CASES[] = {\n" + "\n".join(rows) + "\n};\n"
    lines = []
    for line in text.split("\n"):
        while len(line) > 118:
            cut = line.rfind(" ", 0, 118)
            lines.append(line[:cut])
            line = "      " + line[cut + 1:]
        lines.append(line)
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "scores_golden.h"), "w") as f:
        f.write("\n".join(lines))


main()
