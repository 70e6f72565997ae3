#!/usr/bin/env python3
"""Reference values of ops, from PyTorch in float64: writes ops_golden.h beside itself.

    python3 tests/golden/make_ops.py        (PyTorch 1.13 or later)

Inputs are simple functions of the index, repeated in tests/test_ops_golden.c:
    value(k, i) = sin(0.7 * i + 1.3 * k) + 0.1 * k      (k: number of the tensor, i: index of the element)
"""
import math, os, torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)


def value(k, *shape):
    n = math.prod(shape)
    return torch.tensor([math.sin(0.7 * i + 1.3 * k) + 0.1 * k for i in range(n)]).reshape(shape)


out = {}


def run(name, f, inputs, cotangent=None):
    inputs = [x.clone().requires_grad_(True) for x in inputs]
    y = f(*inputs)
    out[name + "_y"] = y.detach().reshape(-1)
    y.backward(value(9, *y.shape) if cotangent is None else cotangent)
    for j, x in enumerate(inputs):
        out[f"{name}_d{j}"] = x.grad.reshape(-1)


T, C = 3, 5
run("layernorm", lambda x, g, b: F.layer_norm(x, (C,), g, b, eps=1e-6), [value(0, T, C), value(1, C), value(2, C)])
run("rmsnorm", lambda x, g: x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * g, [value(0, T, C), value(1, C)])
run("gelu_erf", lambda x: F.gelu(3 * x), [value(0, T, C)])
out["gelu_erf_d0"] = out["gelu_erf_d0"] / 3  # with respect to 3 x
run("gelu_tanh", lambda x: F.gelu(3 * x, approximate="tanh"), [value(0, T, C)])
out["gelu_tanh_d0"] = out["gelu_tanh_d0"] / 3
run("swiglu", lambda x: F.silu(x[:, :3]) * x[:, 3:], [value(0, T, 6)])
one = torch.tensor(1.0)
labels = torch.tensor([4, -100, 2])
weights = torch.tensor([0.5, 2.0, 1.0, 0.25, 3.0])
xent = dict(ignore_index=-100, reduction="sum")
run("xent", lambda x: F.cross_entropy(x, labels, **xent), [value(0, T, C)], one)
run("xent_weighted_smoothed",
    lambda x: F.cross_entropy(x, labels, weight=weights, label_smoothing=0.1, **xent), [value(0, T, C)], one)
run("bce", lambda x: F.binary_cross_entropy_with_logits(x, (value(3, T, C) > 0.3).double(), reduction="sum"),
    [value(0, T, C)], one)
run("smooth_l1", lambda x: F.smooth_l1_loss(x, value(4, T, C), beta=0.5, reduction="sum"), [value(0, T, C)], one)
run("l2_normalize", lambda x: F.normalize(x, dim=-1, eps=1e-12), [value(0, T, C)])
valid = torch.tensor([[(3 * t + c) % 4 != 0 for c in range(C)] for t in range(T)])
rows = torch.tensor([True, False, True])


def patch(l):
    def f(x):
        per_token = (l(x, value(5, T, C)) * valid).sum(1) / valid.sum(1)
        return per_token[rows].sum()
    return f


run("patch_l2", patch(lambda a, b: (a - b) ** 2), [value(0, T, C)], one)
run("patch_l1", patch(lambda a, b: (a - b).abs()), [value(0, T, C)], one)

p = value(0, C).clone().requires_grad_(True)
adamw = torch.optim.AdamW([p], lr=0.01, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.05)
for step in range(3):
    p.grad = value(6 + step, C)
    adamw.step()
    out[f"adamw_p{step + 1}"] = p.detach().clone()
out["adamw_m3"] = adamw.state[p]["exp_avg"].clone()
out["adamw_v3"] = adamw.state[p]["exp_avg_sq"].clone()

path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ops_golden.h")
with open(path, "w") as f:
    f.write("/* Made by tests/golden/make_ops.py: PyTorch in float64. Do not edit. */\n")
    f.write("#ifndef SN_TESTS_OPS_GOLDEN_H\n#define SN_TESTS_OPS_GOLDEN_H\n\n")
    for name, x in out.items():
        values = [repr(float(v)) for v in x.reshape(-1)]
        f.write(f"static const double golden_{name}[{len(values)}] = {{\n")
        for i in range(0, len(values), 5):
            f.write("    " + ", ".join(values[i:i + 5]) + ",\n")
        f.write("};\n")
    f.write("\n#endif\n")
