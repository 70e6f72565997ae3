#!/usr/bin/env python3
"""Reference losses of a tiny masked autoencoder: ten AdamW steps in float64 with PyTorch.

Written from the definitions (He et al. 2022; the AdamW of Loshchilov and Hutter), independently of the engine.  Weights
and data are formulas that tests/test_mae_parity.c repeats; the masks are those that the engine drew, from
tests/golden/mae_masks.txt (written by `test_mae_parity --write-masks FILE`, and compared with on every run of the test).

usage: make_mae.py > mae_losses.tsv        (one line a step: loss, gradient norm before clipping)
       followed by one line a parameter: name, norm of its gradient in the first step, and 3 projections of that gradient
"""
import math
import os
import sys

import torch

torch.set_default_dtype(torch.float64)

S, T, P = 5, 12, 10            # samples, tokens, patch values
C, H, DEPTH, RATIO = 16, 2, 2, 4
DC, DH, DDEPTH = 12, 1, 1
STEPS, LR, WD, CLIP, B1, B2, EPS = 10, 1e-2, 0.05, 1.0, 0.9, 0.95, 1e-8
here = os.path.dirname(os.path.abspath(__file__))


def f32(x):
    return torch.tensor(x, dtype=torch.float32).to(torch.float64)


def weight(name, *shape):
    k = float(sum(name.encode()) % 1000)
    n = math.prod(shape)
    base = 1.0 if "norm" in name and name.endswith(".weight") else 0.0
    w = f32([base + 0.2 * math.sin(0.7 * i + k) for i in range(n)]).reshape(shape)
    return w.clone().requires_grad_(True)


params = {}


def add(name, *shape):
    params[name] = weight(name, *shape)
    return params[name]


def add_block(prefix, c, ratio):
    f = ratio * c
    for norm in ("norm1", "norm2"):
        add(f"{prefix}.{norm}.weight", c)
        add(f"{prefix}.{norm}.bias", c)
    add(f"{prefix}.attn.qkv.weight", 3 * c, c)
    add(f"{prefix}.attn.qkv.bias", 3 * c)
    add(f"{prefix}.attn.proj.weight", c, c)
    add(f"{prefix}.attn.proj.bias", c)
    add(f"{prefix}.mlp.fc1.weight", f, c)
    add(f"{prefix}.mlp.fc1.bias", f)
    add(f"{prefix}.mlp.fc2.weight", c, f)
    add(f"{prefix}.mlp.fc2.bias", c)


add("embed.patch.weight", C, P)
add("embed.patch.bias", C)
for i in range(DEPTH):
    add_block(f"backbone.blocks.{i}", C, RATIO)
add("backbone.norm.weight", C)
add("backbone.norm.bias", C)
add("decoder.embed.weight", DC, C)
add("decoder.embed.bias", DC)
add("decoder.mask_token", 1, DC)
for i in range(DDEPTH):
    add_block(f"decoder.blocks.{i}", DC, RATIO)
add("decoder.norm.weight", DC)
add("decoder.norm.bias", DC)
add("decoder.head.weight", P, DC)
add("decoder.head.bias", P)

data = f32([[[math.sin(0.1 * (s + 1) * (t * P + p)) + 0.3 * math.cos(0.05 * (s + 2) * (t * P + p)) for p in range(P)]
             for t in range(T)] for s in range(S)])


def sincos(n, c):
    half = c // 2
    omega = torch.tensor([10000.0 ** (-k / half) for k in range(half)])
    angle = torch.arange(n).to(torch.float64)[:, None] * omega[None]
    return torch.cat([angle.sin(), angle.cos()], 1)


def layer_norm(x, name):
    return torch.nn.functional.layer_norm(x, x.shape[-1:], params[name + ".weight"], params[name + ".bias"], 1e-6)


def linear(x, name):
    return x @ params[name + ".weight"].T + params[name + ".bias"]


def block(x, prefix, heads):
    n, c = x.shape
    qkv = linear(layer_norm(x, prefix + ".norm1"), prefix + ".attn.qkv")
    q, k, v = (part.reshape(n, heads, c // heads).transpose(0, 1) for part in qkv.split(c, 1))
    a = torch.softmax(q @ k.transpose(1, 2) / math.sqrt(c // heads), -1) @ v
    x = x + linear(a.transpose(0, 1).reshape(n, c), prefix + ".attn.proj")
    h = linear(layer_norm(x, prefix + ".norm2"), prefix + ".mlp.fc1")
    return x + linear(torch.nn.functional.gelu(h), prefix + ".mlp.fc2")


def loss_of(mask):
    total, count = 0.0, 0
    for s in range(S):
        keep = [t for t in range(T) if not mask[s][t]]
        hide = [t for t in range(T) if mask[s][t]]
        x = linear(data[s][keep], "embed.patch") + sincos(T, C)[keep]
        for i in range(DEPTH):
            x = block(x, f"backbone.blocks.{i}", H)
        x = linear(layer_norm(x, "backbone.norm"), "decoder.embed")
        full = params["decoder.mask_token"].expand(T, DC).clone()
        full[keep] = x
        full = full + sincos(T, DC)
        for i in range(DDEPTH):
            full = block(full, f"decoder.blocks.{i}", DH)
        pred = linear(layer_norm(full, "decoder.norm")[hide], "decoder.head")
        patch = data[s][hide]
        mean = patch.mean(1, keepdim=True)
        var = patch.var(1, unbiased=True, keepdim=True)
        target = ((patch - mean) / (var + 1e-6).sqrt()).to(torch.float32).to(torch.float64)
        total = total + ((pred - target) ** 2).mean(1).sum()
        count += len(hide)
    return total / count


masks = []
with open(os.path.join(here, "mae_masks.txt")) as f:
    for line in f:
        if not line.startswith("#"):
            masks.append([int(ch) for ch in line.strip()])
assert len(masks) == STEPS * S

moments = {name: (torch.zeros_like(p), torch.zeros_like(p)) for name, p in params.items()}
no_decay = lambda name: name.endswith(".bias") or "norm" in name or "token" in name
print("# step\tloss\tgrad_norm; then gradient of the first step: name\tnorm\t3 projections on cos(0.3 i + j)")
first = []
for step in range(1, STEPS + 1):
    for p in params.values():
        p.grad = None
    loss = loss_of(masks[(step - 1) * S: step * S])
    loss.backward()
    norm = math.sqrt(sum(float((p.grad ** 2).sum()) for p in params.values()))
    if step == 1:
        for name, p in params.items():
            g = p.grad.reshape(-1)
            i = torch.arange(g.numel()).to(torch.float64)
            first.append((name, float(g.norm()), *[float((g * torch.cos(0.3 * i + j)).sum()) for j in range(3)]))
    print(f"{step}\t{float(loss.detach()):.17g}\t{norm:.17g}")
    scale = CLIP / (norm + 1e-6) if norm > CLIP else 1.0
    with torch.no_grad():
        for name, p in params.items():
            g = p.grad * scale
            m, v = moments[name]
            p *= 1 - LR * (0.0 if no_decay(name) else WD)
            m.mul_(B1).add_(g, alpha=1 - B1)
            v.mul_(B2).addcmul_(g, g, value=1 - B2)
            p -= LR * (m / (1 - B1 ** step)) / ((v.sqrt() / math.sqrt(1 - B2 ** step)) + EPS)
for row in first:
    print("\t".join([row[0]] + [f"{x:.17g}" for x in row[1:]]))
