#!/usr/bin/env python3
"""Reference values of linear and conv in float64, from PyTorch: writes products_golden.h beside this file.

Run:  python3 tests/golden/make_products.py
Inputs are small exact fractions, series(n, k)[i] = ((37 i + 11 k) mod 101) / 64 - 3/4, so that C has the same ones.
"""
import os
import torch

torch.set_default_dtype(torch.float64)
here = os.path.dirname(os.path.abspath(__file__))
out = open(os.path.join(here, "products_golden.h"), "w")
out.write("/* Made by make_products.py (PyTorch, float64). Series of inputs: x 1, W 2, b 3, dy 4. */\n")


def series(shape, k):
    n = int(torch.tensor(shape).prod())
    return ((37 * torch.arange(n) + 11 * k) % 101 / 64.0 - 0.75).reshape(shape)


def table(name, values):
    values = values.detach().flatten().tolist()
    out.write("static const double %s[%d] = {\n" % (name, len(values)))
    for i in range(0, len(values), 4):
        out.write("    " + ", ".join("%.17g" % v for v in values[i:i + 4]) + ",\n")
    out.write("};\n")


def write(name, f, x, w, b):
    for t in (x, w, b):
        t.requires_grad_()
    y = f(x, w, b)
    y.backward(series(tuple(y.shape), 4))
    for part, t in (("y", y), ("dx", x.grad), ("dw", w.grad), ("db", b.grad)):
        table("%s_%s" % (name, part), t)


def channels_last(conv):
    """x (T, positions..., Cin) to y (T, positions..., Cout) by PyTorch's channels-first convolution."""
    def f(x, w, b):
        n = x.dim()
        return conv(x.permute(0, n - 1, *range(1, n - 1)), w, b).permute(0, *range(2, n), 1)
    return f


F = torch.nn.functional
write("linear", F.linear, series((3, 4), 1), series((2, 4), 2), series((2,), 3))
write("conv1", channels_last(lambda x, w, b: F.conv1d(x, w, b, stride=3, padding=2)),
      series((2, 11, 2), 1), series((3, 2, 4), 2), series((3,), 3))
write("conv2", channels_last(lambda x, w, b: F.conv2d(x, w, b, stride=(2, 1), padding=(1, 0))),
      series((2, 5, 4, 2), 1), series((2, 2, 3, 2), 2), series((2,), 3))
write("conv3", channels_last(lambda x, w, b: F.conv3d(x, w, b, stride=(1, 2, 2), padding=(1, 1, 0))),
      series((1, 3, 4, 4, 1), 1), series((2, 1, 2, 3, 2), 2), series((2,), 3))
