#!/usr/bin/env python3
"""Reference values of attention, rope and head_norm, from PyTorch in float64: writes attention_golden.h beside this file.

Run:  python3 tests/golden/make_attention.py
Inputs come from a linear congruential generator (integers and exact products), so that C has the same ones:
input stream k starts at state 12345 + k.
"""
import math
import os
import torch
import torch.nn.functional as F

here = os.path.dirname(os.path.abspath(__file__))
out = open(os.path.join(here, "attention_golden.h"), "w")
out.write("/* Written by make_attention.py (PyTorch, float64). */\n\n")


def stream(k, *shape):
    x, state = [], 12345 + k
    for _ in range(math.prod(shape)):
        state = (state * 1103515245 + 12345) % 2**31
        x.append(4.0 * (state / 2**31 - 0.5))
    return torch.tensor(x, dtype=torch.float64).reshape(shape)


def table(name, values):
    values = values.detach().reshape(-1).tolist()
    out.write("static const double %s[%d] = {\n" % (name, len(values)))
    for i in range(0, len(values), 4):
        out.write("    " + ", ".join("%.17g" % v for v in values[i:i + 4]) + ",\n")
    out.write("};\n")


def heads(x, h, d):  # (n, h d) -> (1, h, n, d)
    return x.reshape(1, -1, h, d).transpose(1, 2)


def attention(name, tq, tk, q_offsets, k_offsets, h, d, causal, fused):
    c = h * d
    q = stream(0, tq, 3 * c if fused else c).requires_grad_()
    kv = q if fused else stream(1, tk, 2 * c).requires_grad_()
    first_k = c if fused else 0
    rows, lses = [], []
    for s in range(len(q_offsets) - 1):
        qs = heads(q[q_offsets[s]:q_offsets[s + 1], :c], h, d)
        ks = heads(kv[k_offsets[s]:k_offsets[s + 1], first_k:first_k + c], h, d)
        vs = heads(kv[k_offsets[s]:k_offsets[s + 1], first_k + c:first_k + 2 * c], h, d)
        y = F.scaled_dot_product_attention(qs, ks, vs, is_causal=causal)
        rows.append(y.transpose(1, 2).reshape(-1, c))
        a = qs @ ks.transpose(-1, -2) / math.sqrt(d)
        if causal:
            a = a.masked_fill(torch.ones(a.shape[-2:]).triu(1).bool(), -math.inf)
        lses.append(a.logsumexp(-1)[0].T)
    y = torch.cat(rows)
    y.backward(stream(2, tq, c))
    table(name + "_out", y)
    table(name + "_lse", torch.cat(lses))
    table(name + "_dq", q.grad)
    if not fused:
        table(name + "_dkv", kv.grad)


attention("full", 7, 7, [0, 4, 7], [0, 4, 7], 2, 3, False, True)
attention("causal", 7, 7, [0, 4, 7], [0, 4, 7], 2, 3, True, True)
attention("cross", 5, 6, [0, 2, 5], [0, 4, 6], 2, 4, False, False)

# rope: 3 rows of one head of 10 channels, two axes of 4 and 4 channels, channels 8 and 9 copied
x = stream(3, 3, 10).requires_grad_()
position = 3.0 * stream(4, 3, 2)
parts = []
for axis in range(2):
    pairs = torch.view_as_complex(x[:, 4 * axis:4 * axis + 4].reshape(3, 2, 2))
    frequency = torch.tensor([10000.0 ** (-2 * i / 4) for i in range(2)], dtype=torch.float64)
    angle = position[:, axis:axis + 1] * frequency
    parts.append(torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).reshape(3, 4))
y = torch.cat(parts + [x[:, 8:]], 1)
y.backward(stream(5, 3, 10))
table("rope_out", y)
table("rope_dx", x.grad)

# head_norm: 4 rows, q and k of 2 heads of 3 channels, then 2 columns that are copied
for name in ("rms", "layer"):
    x = stream(6, 4, 14).requires_grad_()
    gains = [stream(7, 3).requires_grad_(), stream(8, 3).requires_grad_()]
    parts = []
    for g in range(2):
        z = x[:, 6 * g:6 * g + 6].reshape(4, 2, 3)
        if name == "layer":
            z = F.layer_norm(z, (3,), gains[g], None, 1e-3)
        else:
            z = z * torch.rsqrt(z.pow(2).mean(-1, keepdim=True) + 1e-3) * gains[g]
        parts.append(z.reshape(4, 6))
    y = torch.cat(parts + [x[:, 12:]], 1)
    y.backward(stream(9, 4, 14))
    table(name + "_out", y)
    table(name + "_dx", x.grad)
    table(name + "_dgain_0", gains[0].grad)
    table(name + "_dgain_1", gains[1].grad)
out.close()
