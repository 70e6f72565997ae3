#!/usr/bin/env python3
"""Batch-coupled losses and their ops, from PyTorch in float64: writes coupled_golden.h beside itself.

    python3 tests/golden/make_coupled.py        (PyTorch 1.13 or later)

Inputs are exact in binary and repeated in tests/test_coupled_ops.c:
    series(k)[i] = ((37 i + 11 k) mod 101) / 64 - 3/4       (k: number of the tensor, i: index of the element)
Losses are written as their papers and reference programs state them (rows removed, masks with -1e9, cross_entropy), not as
the ops compute them.
"""
import math, os, torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
out = {}


def series(k, *shape):
    n = math.prod(shape)
    return (torch.tensor([(37 * i + 11 * k) % 101 for i in range(n)], dtype=torch.float64) / 64 - 0.75).reshape(shape)


def run(name, f, *inputs):
    inputs = [x.clone().requires_grad_(True) for x in inputs]
    loss = f(*inputs)
    out[name] = loss.detach().reshape(-1)
    loss.backward()
    for j, x in enumerate(inputs):
        out[f"{name}_d{j}"] = x.grad.reshape(-1)


def cross(logits, target):
    """Mean over rows of -sum target * log_softmax."""
    return -(target * F.log_softmax(logits, 1)).sum(1).mean()


def ntxent(z, tau=0.5):
    z = F.normalize(z)
    n = len(z)
    sim = (z @ z.t() / tau).masked_fill(torch.eye(n, dtype=torch.bool), -math.inf)
    return F.cross_entropy(sim, torch.arange(n).roll(n // 2))


def simclr_tf(z, tau=0.5):
    """Two blocks of logits per view, the row itself pushed down by 1e9, one mean per view, added."""
    a, b = F.normalize(z).chunk(2)
    n = len(a)
    own = torch.eye(n) * 1e9
    aa, bb, ab, ba = a @ a.t() / tau - own, b @ b.t() / tau - own, a @ b.t() / tau, b @ a.t() / tau
    labels = torch.arange(n)
    return F.cross_entropy(torch.cat([ab, aa], 1), labels) + F.cross_entropy(torch.cat([ba, bb], 1), labels)


def clip(a, b, s):
    keep = [0, 1, 3, 4]  # row 2 of `a` has no partner: both rows are taken out before anything is computed
    a, b = F.normalize(a)[keep], F.normalize(b)[keep]
    logits = s.exp() * a @ b.t()
    labels = torch.arange(len(keep))
    return (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2


persons = torch.tensor([0, 1, 0, 2, 1])
same = persons[:, None] == persons[None, :]


def cmsc(u, v, tau=0.1):
    s = F.normalize(u) @ F.normalize(v).t() / tau
    return (-F.log_softmax(s, 1)[same].mean() - F.log_softmax(s, 0)[same].mean()) / 2


def clocs(u, v, tau=0.1):
    s = F.normalize(u) @ F.normalize(v).t() / tau
    rows, cols = -F.log_softmax(s, 1), -F.log_softmax(s, 0)
    upper, lower = torch.triu(same, 1), torch.tril(same, -1)
    return (rows.diag().mean() + cols.diag().mean() + rows[upper].mean() + cols[lower].mean()) / 4


ages = torch.tensor([0.0, 0.5, 0.25, 2.0, 1.5, 1.0])


def kernel(z, tau=0.2):
    z = F.normalize(z)
    own = torch.eye(len(z), dtype=torch.bool)
    k = torch.exp(-(ages[:, None] - ages[None, :]) ** 2 / (2 * 0.5 ** 2)).masked_fill(own, 0)
    target = k / k.sum(1, keepdim=True)
    logits = (z @ z.t() / tau).masked_fill(own, -1e9)
    return cross(logits, target)


def queue(q, key):
    bank = F.normalize(series(5, 5, 3))
    logits = F.normalize(q) @ torch.cat([F.normalize(key), bank]).t() / 0.2
    return F.cross_entropy(logits, torch.arange(len(q)))


def siglip(a, b, s, bias):
    logits = s.exp() * F.normalize(a) @ F.normalize(b).t() + bias
    y = 2 * torch.eye(len(a)) - 1
    return -F.logsigmoid(y * logits).sum() / len(a)


def off_diagonal(c):
    return c.flatten()[:-1].view(len(c) - 1, len(c) + 1)[:, 1:].flatten()


def vicreg(a, b):
    loss = 25 * F.mse_loss(a, b)
    for x in (a, b):
        deviation = torch.sqrt(x.var(dim=0) + 1e-4)
        x = x - x.mean(0)
        covariance = x.t() @ x / (len(x) - 1)
        loss = loss + 25 * F.relu(1 - deviation).mean() / 2 + off_diagonal(covariance).pow(2).sum() / x.shape[1]
    return loss


M32 = 0xFFFFFFFF


def philox(c, key):
    c, (k0, k1) = list(c), key
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(q >> 32) ^ c[1] ^ k0, q & M32, (p >> 32) ^ c[3] ^ k1, p & M32]
        k0, k1 = (k0 + 0x9E3779B9) & M32, (k1 + 0xBB67AE85) & M32
    return c


def direction(seed, step, number, d):
    """d normal deviates of the stream (seed, purpose 14, step, number), of length one."""
    i = philox(philox([step, 0, number, 0], (seed, 0)), (14, 0x736E7075))
    words = sum((philox([block, 0] + i[2:], i[:2]) for block in range(d)), [])
    uniform = [((words[2 * j] | words[2 * j + 1] << 32) >> 11) * 2.0 ** -53 for j in range(2 * d)]
    normal = [math.sqrt(-2 * math.log(1 - uniform[2 * j])) * math.cos(2 * math.pi * uniform[2 * j + 1]) for j in range(d)]
    return torch.tensor(normal) / math.sqrt(sum(x * x for x in normal))


def sigreg(z):
    """Eight directions, seed 7, step 3; rows 1 and 4 take no part."""
    z = z[[0, 2, 3, 5, 6]]
    a = torch.stack([direction(7, 3, s, z.shape[1]) for s in range(8)], 1)
    t = torch.linspace(0, 3, 17)
    phi = torch.exp(-t * t / 2)
    weights = torch.full((17,), 2 * 3 / 16)
    weights[[0, -1]] = 3 / 16
    x = (z @ a).unsqueeze(-1) * t
    err = (x.cos().mean(0) - phi) ** 2 + x.sin().mean(0) ** 2
    return ((err @ (weights * phi)) * len(z)).mean()


def projector(z, w1, gamma, beta, w2):
    """Linear, BatchNorm over the rows that are there (row 1 is not), ReLU, Linear; sum of squares of what comes out."""
    z = z[[0, 2, 3, 4]] @ w1.t()
    z = F.relu(F.batch_norm(z, None, None, gamma, beta, training=True, eps=1e-5))
    return (z @ w2.t()).pow(2).sum()


run("ntxent", ntxent, series(0, 8, 3))
run("simclr_tf", simclr_tf, series(0, 8, 3))
run("clip", clip, series(1, 5, 3), series(2, 5, 3), torch.tensor([1.25]))
run("cmsc", cmsc, series(1, 5, 3), series(2, 5, 3))
run("clocs", clocs, series(1, 5, 3), series(2, 5, 3))
run("kernel", kernel, series(3, 6, 3))
run("queue", queue, series(1, 4, 3), series(4, 4, 3))
run("siglip", siglip, series(1, 5, 3), series(2, 5, 3), torch.tensor([math.log(10)]), torch.tensor([-2.5]))
run("vicreg", vicreg, series(1, 7, 3), series(2, 7, 3))
run("sigreg", sigreg, 2 * series(1, 7, 3))
run("projector", projector, series(1, 5, 3), series(2, 4, 3), series(3, 4), series(4, 4), series(5, 3, 4))

path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "coupled_golden.h")
with open(path, "w") as f:
    f.write("/* Made by tests/golden/make_coupled.py: PyTorch in float64. Do not edit. */\n")
    f.write("#ifndef SN_TESTS_COUPLED_GOLDEN_H\n#define SN_TESTS_COUPLED_GOLDEN_H\n\n")
    for name, x in out.items():
        values = [repr(float(v)) for v in x.reshape(-1)]
        f.write(f"static const double golden_{name}[{len(values)}] = {{\n")
        for i in range(0, len(values), 5):
            f.write("    " + ", ".join(values[i:i + 5]) + ",\n")
        f.write("};\n")
    f.write("\n#endif\n")
