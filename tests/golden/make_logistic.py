#!/usr/bin/env python3
"""Writes tests/golden/logistic_golden.h: logistic and ridge regression of scikit-learn, polished to the exact minimum.

scikit-learn's solvers stop at a tolerance; here Newton steps in float64 finish the work, and scikit-learn's own result must
agree with the polished one to the tolerance that its solver reaches, so that the convention (sum of losses, free intercept)
is scikit-learn's.  Features are made by a small formula that the C test repeats: no table of inputs.
"""
import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge


def features(n, d, seed):
    """Weyl-like pseudo-random numbers that C repeats exactly: frac of integer products, all exact in float64."""
    i = np.arange(n)[:, None].astype(np.int64)
    j = np.arange(d)[None, :].astype(np.int64)
    v = (i * 7919 + j * 104729 + i * j * 31 + seed * 613) * 2654435761 % 4294967296
    return v / 4294967296.0 * 4 - 2


def labels(x, k):
    n = len(x)
    score = np.stack([x[:, c % x.shape[1]] + 0.5 * x[:, (2 * c + 1) % x.shape[1]] ** 2 for c in range(k)], 1)
    y = score.argmax(1)
    y[::7] = np.arange(len(y[::7])) % k
    return y


def polish(x, y, k, C, s, w, b):
    """Newton on the multinomial (k > 2) or binary objective."""
    n, d = x.shape
    xa = np.hstack([x, np.ones((n, 1))])
    q = 1 if k == 2 else k
    theta = np.hstack([w, b[:, None]])
    penalty = np.tile(np.r_[np.ones(d), 0.0], q)
    for _ in range(60):
        z = xa @ theta.T
        if q == 1:
            p = 1 / (1 + np.exp(-z))
            e = s[:, None] * (p - (y == 1)[:, None])
            h = np.einsum("i,ij,ik->jk", C * s * (p * (1 - p))[:, 0], xa, xa)
        else:
            z = z - z.max(1, keepdims=True)
            p = np.exp(z)
            p /= p.sum(1, keepdims=True)
            e = s[:, None] * (p - np.eye(k)[y])
            h = np.zeros((q * (d + 1),) * 2)
            for a in range(q):
                for c in range(q):
                    wgt = C * s * p[:, a] * ((a == c) - p[:, c])
                    h[a * (d + 1):(a + 1) * (d + 1), c * (d + 1):(c + 1) * (d + 1)] = (xa * wgt[:, None]).T @ xa
        g = C * (e.T @ xa).ravel() + penalty * theta.ravel()
        theta = theta - (np.linalg.pinv(h + np.diag(penalty)) @ g).reshape(theta.shape)
        if np.linalg.norm(g) < 1e-11:
            break
    theta[:, -1] -= theta[:, -1].mean() if q > 1 else 0
    return theta[:, :-1], theta[:, -1]


def array(name, v):
    v = np.asarray(v, float).ravel()
    body = ", ".join("%.17g" % t for t in v)
    return "static const double %s[%d] = {%s};\n" % (name, len(v), body)


def main():
    cases = [  # n, d, k, C, balanced, weighted
        (40, 5, 2, 1.0, 0, 0), (40, 5, 2, 1e4, 1, 0), (60, 4, 3, 0.1, 1, 0), (60, 4, 4, 10.0, 0, 1), (12, 30, 2, 1.0, 1, 0),
        (15, 25, 3, 100.0, 0, 0), (33, 7, 2, 1e-4, 0, 1)]
    out = ["/* Made by make_logistic.py; do not edit. */\n"]
    table = []
    for c, (n, d, k, C, balanced, weighted) in enumerate(cases):
        x, s = features(n, d, c), np.ones(n)
        y = labels(x, k)
        if weighted:
            s = 1 + np.arange(n) % 3
        model = LogisticRegression(C=C, tol=1e-10, max_iter=100000, class_weight="balanced" if balanced else None)
        model.fit(x, y, sample_weight=s)
        assert len(model.classes_) == k
        weights = s.astype(float)
        if balanced:
            weights = weights * (n / (k * np.bincount(y)))[y]
        w, b = polish(x, y, k, C, weights, model.coef_.copy(), model.intercept_.copy())
        gap = np.abs(w - model.coef_).max() / max(1, np.abs(w).max())
        assert gap < 2e-3, (c, gap)
        z = x @ w.T + b
        if k == 2:
            p1 = 1 / (1 + np.exp(-z[:, 0]))
            p = np.stack([1 - p1, p1], 1)
        else:
            e = np.exp(z - z.max(1, keepdims=True))
            p = e / e.sum(1, keepdims=True)
        out += [array("logistic%d_w" % c, w), array("logistic%d_b" % c, b), array("logistic%d_p" % c, p)]
        table.append("    {%d, %d, %d, %.17g, %d, %d, logistic%d_w, logistic%d_b, logistic%d_p}," % (
            n, d, k, C, balanced, weighted, c, c, c))
    out.append("typedef struct logistic_case { int n, d, k; double C; int balanced, weighted; const double *w, *b, *p; } "
               "logistic_case;\n")
    out.append("static const logistic_case LOGISTIC_CASES[] = {\n" + "\n".join(table) + "\n};\n")
    table = []
    for c, (n, d, alpha) in enumerate([(30, 6, 1.0), (10, 25, 0.01), (25, 3, 1000.0)]):
        x = features(n, d, 50 + c)
        y = x[:, 0] * 2 - x[:, 1] + features(n, 1, 90 + c)[:, 0] + 3
        model = Ridge(alpha=alpha, solver="cholesky").fit(x, y)
        out += [array("ridge%d_w" % c, model.coef_)]
        table.append("    {%d, %d, %.17g, %.17g, ridge%d_w}," % (n, d, alpha, model.intercept_, c))
    out.append("typedef struct ridge_case { int n, d; double alpha, b; const double *w; } ridge_case;\n")
    out.append("static const ridge_case RIDGE_CASES[] = {\n" + "\n".join(table) + "\n};\n")
    import os
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "logistic_golden.h")
    with open(path, "w") as f:
        for chunk in out:
            while len(chunk) > 118 and not chunk.startswith("typedef") and "LOGISTIC_CASES" not in chunk and "RIDGE_CASES" not in chunk:
                cut = chunk.rfind(" ", 0, 118)
                f.write(chunk[:cut] + "\n    ")
                chunk = chunk[cut + 1:]
            f.write(chunk)


main()
