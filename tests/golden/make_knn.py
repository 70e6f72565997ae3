#!/usr/bin/env python3
"""Writes tests/golden/knn_golden.h: DINO's weighted kNN votes, in numpy, with neighbours from scikit-learn.

Votes are computed twice: by a full sort of the cosine similarities, and from sklearn.neighbors.NearestNeighbors (brute force,
cosine) with KNeighborsClassifier's weights; both must agree. Features are made by a formula that the C test repeats.
"""
import numpy as np
from sklearn.neighbors import KNeighborsClassifier

T = 0.07


def features(n, d, seed):
    i = np.arange(n)[:, None].astype(np.int64)
    j = np.arange(d)[None, :].astype(np.int64)
    v = (i * 7919 + j * 104729 + i * j * 31 + seed * 613) * 2654435761 % 4294967296
    return v / 4294967296.0 * 4 - 2


def votes(train, y, test, k, n_classes):
    a = train / np.maximum(np.linalg.norm(train, axis=1, keepdims=True), 1e-12)
    b = test / np.maximum(np.linalg.norm(test, axis=1, keepdims=True), 1e-12)
    s = b @ a.T
    out = np.zeros((len(test), n_classes))
    for i in range(len(test)):
        near = np.argsort(-s[i], kind="stable")[:k]
        w = np.exp(s[i, near] / T)
        for c in range(n_classes):
            out[i, c] = w[y[near] == c].sum()
        out[i] /= w.sum()
    return out


def by_sklearn(train, y, test, k, n_classes):
    model = KNeighborsClassifier(k, weights=lambda d: np.exp((1 - d) / T), metric="cosine", algorithm="brute").fit(train, y)
    p = model.predict_proba(test)
    out = np.zeros((len(test), n_classes))
    out[:, model.classes_] = p
    return out


def text(values):
    return ", ".join("%.17g" % v for v in values.ravel())


# Training rows, test rows, features, classes, k. The last is smaller than 100 test rows by far, with every training row a voter.
CASES = [(60, 13, 5, 3, [10, 20]), (250, 7, 17, 4, [10, 20, 100, 200]), (7, 1, 3, 2, [1, 7])]
with open("knn_golden.h", "w") as out:
    out.write("/* Made by make_knn.py; do not edit. */\n")
    rows = []
    for c, (n, m, d, n_classes, ks) in enumerate(CASES):
        x = features(n + m, d, c)
        train, test = x[:n], x[n:]
        y = np.floor((train[:, 0] + 2) / 4 * n_classes).astype(int)
        y[::5] = np.arange(len(y[::5])) % n_classes
        p = np.stack([votes(train, y, test, k, n_classes) for k in ks])
        q = np.stack([by_sklearn(train, y, test, k, n_classes) for k in ks])
        assert np.abs(p - q).max() < 1e-12, np.abs(p - q).max()
        out.write(f"static const int64_t knn{c}_k[{len(ks)}] = {{{', '.join(map(str, ks))}}};\n")
        out.write(f"static const double knn{c}_p[{p.size}] = {{{text(p)}}};\n")
        rows.append(f"    {{{n}, {m}, {d}, {n_classes}, {len(ks)}, knn{c}_k, knn{c}_p}}")
    out.write("typedef struct knn_case {\n  int64_t n_train, n_test, d, n_classes, n_k;\n  const int64_t *k;\n"
              "  const double *p; /* (n_k, n_test, n_classes) */\n} knn_case;\n"
              "static const knn_case KNN_CASES[] = {\n" + ",\n".join(rows) + "};\n")
