"""compare.sh's rounds: every setting of PyTorch and sonde one after the other, several times, and the table of ratios."""
import argparse
import json
import os
import platform
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


class Torch:
    """One setting in a process of its own, which waits for its turns."""

    def __init__(self, python, model, dtype, mode, threads, flags):
        self.name = f"{mode}, {threads} thread" + ("s" if threads > 1 else "")
        self.process = subprocess.Popen([python, os.path.join(HERE, "torch_mae.py"), "--model", model, "--dtype", dtype,
                                         "--mode", mode, "--threads", str(threads)] + flags, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env=dict(os.environ, OMP_NUM_THREADS=str(threads)))
        self.about = self.read()
        self.peak = self.about["peak_mib"]
        self.times = []

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"PyTorch ({self.name}) ended without a result")
        return json.loads(line)

    def turn(self, seconds):
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        result = self.read()
        self.times.append(result["ms"])
        self.peak = max(self.peak, result["peak_mib"])

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def run_sonde(command, model, dtype, seconds, flags):
    name = f"train_step/{model}/1d/{dtype}"
    out = subprocess.run([command, "bench", name, "--json", "--seconds", str(seconds)] + flags, check=True, stdout=subprocess.PIPE)
    return json.loads(out.stdout)["results"][0]


def compare(args, model, dtype):
    flags = ["--cpu-time"] if args.cpu_time else []
    numbers = [1] if args.cpu_time else sorted({1, args.threads})
    settings = [Torch(args.python, model, dtype, mode, n, flags) for mode in args.modes.split(",") for n in numbers]
    ours = []
    for _ in range(args.rounds):
        ours.append(run_sonde(args.sonde, model, dtype, args.seconds, flags + ["--threads", str(numbers[-1])]))
        for setting in settings:
            setting.turn(args.seconds)
    for setting in settings:
        setting.close()
    if any(s.about["parameters"] != ours[0]["parameters"] for s in settings):
        raise SystemExit(f"{model}: {ours[0]['parameters']} parameters here, {settings[0].about['parameters']} in PyTorch")
    best = min(settings, key=lambda s: min(s.times))
    row = min(ours, key=lambda r: r["ms"])
    peak = max(r["peak_mib"] for r in ours)
    by_round = sorted(t / r["ms"] for t, r in zip(best.times, ours))
    least = min(settings, key=lambda s: s.peak)
    return {"row": f"{model} {dtype}", "sonde_ms": row["ms"], "torch_ms": min(best.times), "torch_best": best.name,
            "ratio": min(best.times) / row["ms"], "ratio_least": by_round[0], "ratio_most": by_round[-1],
            "sonde_mib": peak, "torch_mib": best.peak, "torch_least_mib": least.peak, "torch_least": least.name,
            "memory_ratio": peak / best.peak, "gemm_share": row["gemm_share"], "model_gflops": row["model_gflops"],
            "torch_all": {s.name: min(s.times) for s in settings}, "torch": best.about["torch"],
            "torch_cpu": best.about["cpu"], "torch_parameters": best.about["parameters"], "threads": row["threads"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sonde")
    parser.add_argument("python")
    parser.add_argument("--models", default="vit_t,vit_s,vit_b")
    parser.add_argument("--dtypes", default="f32,bf16")
    parser.add_argument("--modes", default="eager,compile")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="beside 1: torch's other setting")
    parser.add_argument("--cpu-time", action="store_true", help="one thread each, CPU time: for a busy machine")
    parser.add_argument("--json", help="file for everything that was measured")
    args = parser.parse_args()
    rows = []
    print(f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f}")
    print(f"{'step':12} {'sonde ms':>9} {'torch ms':>9} {'ratio':>6} {'(rounds)':>13} {'sonde MiB':>10} {'torch MiB':>10} "
          f"{'share':>6} {'gemm':>6}  PyTorch's best")
    for model in args.models.split(","):
        for dtype in args.dtypes.split(","):
            r = compare(args, model, dtype)
            rows.append(r)
            print(f"{r['row']:12} {r['sonde_ms']:9.2f} {r['torch_ms']:9.2f} {r['ratio']:6.2f} "
                  f"({r['ratio_least']:5.2f}-{r['ratio_most']:5.2f}) {r['sonde_mib']:10.1f} {r['torch_mib']:10.1f} "
                  f"{r['memory_ratio']:6.2f} {r['gemm_share']:6.2f}  {r['torch_best']} "
                  f"{ {k: round(v, 2) for k, v in r['torch_all'].items()} }", flush=True)
    print(f"PyTorch {rows[0]['torch']} ({rows[0]['torch_cpu']}), load at the end {os.getloadavg()[0]:.1f}")
    if args.json:
        with open(args.json, "w") as file:
            json.dump(rows, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    sys.exit(main())
