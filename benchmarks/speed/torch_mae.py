"""The masked autoencoder of `sonde bench train_step/...` in PyTorch: same sizes, same tokens, same mask ratio, AdamW.

Written from the definitions in encoders/ and objectives/mae.h, in the form that suits PyTorch best: every sample has the same
length, so that tokens are a dense batch (B, n, P), and targets and index lists are made before the clock starts, as they are on the
other side (there on a loader thread).  scaled_dot_product_attention, fused AdamW, gradients set to None.

Warm-up first, then one JSON line on standard output; then, for each number of seconds read from standard input, steps for that
long and one JSON line with their best and median time.  Peak memory is above that of the process with torch loaded, before
the model is built; with torch.compile the compiler's own memory does not count where the system can forget a peak
(/proc/self/clear_refs)."""
import argparse
import contextlib
import json
import resource
import statistics
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

# width, depth, heads; decoder width, depth, heads; tokens of a step, of a sample, values of a patch
MODELS = {
    "vit_t": (128, 4, 4, 96, 1, 3, 6400, 50, 20),
    "vit_s": (384, 12, 6, 192, 4, 6, 3200, 200, 20),
    "vit_b": (768, 12, 12, 384, 4, 12, 1600, 200, 20),
}


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-6), nn.LayerNorm(width, eps=1e-6)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc1, self.fc2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):  # (B, n, C)
        b, n, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(a.transpose(1, 2).reshape(b, n, c))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


def sincos(n, width):
    """(n, width): sines of n positions in the first half, cosines in the second."""
    rates = 10000.0 ** (-torch.arange(width // 2, dtype=torch.float64) / (width // 2))
    angles = torch.arange(n, dtype=torch.float64)[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], 1).float()


class MAE(nn.Module):
    def __init__(self, width, depth, heads, dec_width, dec_depth, dec_heads, n, patch):
        super().__init__()
        self.embed = nn.Linear(patch, width)
        self.channel = nn.Parameter(0.02 * torch.randn(1, width))
        self.blocks = nn.ModuleList([Block(width, heads) for _ in range(depth)])
        self.norm = nn.LayerNorm(width, eps=1e-6)
        self.dec_embed = nn.Linear(width, dec_width)
        self.mask_token = nn.Parameter(0.02 * torch.randn(1, 1, dec_width))
        self.dec_channel = nn.Parameter(0.02 * torch.randn(1, dec_width))
        self.dec_blocks = nn.ModuleList([Block(dec_width, dec_heads) for _ in range(dec_depth)])
        self.dec_norm = nn.LayerNorm(dec_width, eps=1e-6)
        self.head = nn.Linear(dec_width, patch)
        self.register_buffer("positions", sincos(n, width))
        self.register_buffer("dec_positions", sincos(n, dec_width))

    def forward(self, visible, kept, restore, masked, target):
        # visible (B, v, P), kept (B, v), restore (B, n): row of [visible, mask tokens], masked (B, m), target (B, m, P)
        x = self.embed(visible) + self.positions[kept] + self.channel
        for block in self.blocks:
            x = block(x)
        x = self.dec_embed(self.norm(x))
        b, v, c = x.shape
        n = restore.shape[1]
        x = torch.cat([x, self.mask_token.expand(b, n - v, c).to(x.dtype)], 1)
        x = torch.gather(x, 1, restore[:, :, None].expand(b, n, c))
        x = x + self.dec_positions + self.dec_channel
        for block in self.dec_blocks:
            x = block(x)
        x = torch.gather(self.dec_norm(x), 1, masked[:, :, None].expand(b, masked.shape[1], c))
        return F.mse_loss(self.head(x).float(), target)


def make_batch(b, n, patch, ratio=0.75):
    """Random walks, and what the loader of the other side would have made of them."""
    x = torch.randn(b, n * patch).cumsum(1).view(b, n, patch) * 0.1
    m = int(n * ratio + 0.5)
    order = torch.rand(b, n).argsort(1)
    masked, kept = order[:, :m].sort(1).values, order[:, m:].sort(1).values
    restore = torch.empty(b, n, dtype=torch.long)
    rows = torch.arange(n).expand(b, n)
    restore.scatter_(1, torch.cat([kept, masked], 1), rows)
    mean, var = x.mean(-1, keepdim=True), x.var(-1, keepdim=True)
    target = torch.gather((x - mean) / (var + 1e-6).sqrt(), 1, masked[:, :, None].expand(b, m, patch)).contiguous()
    visible = torch.gather(x, 1, kept[:, :, None].expand(b, n - m, patch)).contiguous()
    return visible, kept, restore, masked, target


def resident_mib():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**20


def peak_mib():
    with contextlib.suppress(OSError):
        with open("/proc/self/status") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def forget_peak():
    with contextlib.suppress(OSError):
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--dtype", choices=["f32", "bf16"], required=True)
    parser.add_argument("--mode", choices=["eager", "compile"], default="eager")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--cpu-time", action="store_true", help="CPU time of the process, for a busy machine, with one thread")
    args = parser.parse_args()
    clock = time.process_time if args.cpu_time else time.perf_counter
    torch.manual_seed(0)
    torch.set_num_threads(args.threads)
    width, depth, heads, dec_width, dec_depth, dec_heads, tokens, n, patch = MODELS[args.model]
    batches = [make_batch(tokens // n, n, patch) for _ in range(4)]
    before = resident_mib()
    model = MAE(width, depth, heads, dec_width, dec_depth, dec_heads, n, patch)
    parameters = sum(p.numel() for p in model.parameters())
    matrices = [p for k, p in model.named_parameters() if k.endswith("weight") and p.dim() == 2]
    others = [p for k, p in model.named_parameters() if not (k.endswith("weight") and p.dim() == 2)]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}],
                                  lr=1e-4, betas=(0.9, 0.95), eps=1e-8, fused=True)
    run = torch.compile(model) if args.mode == "compile" else model

    def step(i):
        start = clock()
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=args.dtype == "bf16"):
            loss = run(*batches[i % len(batches)])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        value = loss.item()
        return 1e3 * (clock() - start), value

    count, loss = 0, 0.0
    for _ in range(10):
        _, loss = step(count)
        count += 1
    forget_peak()
    for _ in range(3):
        _, loss = step(count)
        count += 1
    print(json.dumps({"torch": torch.__version__, "model": args.model, "dtype": args.dtype, "mode": args.mode,
                      "threads": args.threads, "parameters": parameters, "cpu": torch.backends.cpu.get_cpu_capability(),
                      "peak_mib": peak_mib() - before}), flush=True)
    for line in sys.stdin:
        seconds, times, start = float(line), [], time.perf_counter()
        while len(times) < 3 or time.perf_counter() - start < seconds:
            ms, loss = step(count)
            times.append(ms)
            count += 1
        if not loss == loss:
            raise SystemExit("the loss is not finite")
        print(json.dumps({"ms": min(times), "ms_median": statistics.median(times), "loss": loss, "steps": len(times),
                          "peak_mib": peak_mib() - before}), flush=True)


if __name__ == "__main__":
    main()
