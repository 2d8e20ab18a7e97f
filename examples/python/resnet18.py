"""ResNet-18 on twenty workers under nine gradient codes, scaled down.

Cao, Yan, Tang, Han, "Adaptive gradient coding", 2021, section VII and Table VI, on a
simulator that plays every message. Gradients are real and have all 11,173,962
parameters (--width 64; fewer by default). The times of computing a part and of decoding
are measured here. A message's time is in the paper's proportion to computing (13 to
2.45), and so is a straggler's idling (16 to 2.45). All codes broadcast the parameters
in the same way, so that is left out. Mixing gradients at the workers is left out as
well.

The simulated time stands next to the time of the paper's model for the same stragglers:
computing, a message of 1/(d-s) of the gradient, and idling if too many straggle. The
model's mean over all possible stragglers orders the codes. This order is compared with
Table VI without its slips. Two things differ. AGC's segments share the link of their
worker and are sent in sequence until enough have come, which takes slightly longer than
in the model. And in the paper a message after idling takes a thirteenth of the usual
time. Here it takes the full time, so codes that wait often come later.
"""
import argparse
import itertools
import math
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

import kofn
import kofn.torch
import numpy as np
import torch
from torch import nn

N, D, LAM = 20, 3, 6
CODES = {"uncoded": "uncoded", "CGC(0)": "cgc:d=3,s=0", "G-CGC(0)": "g-cgc:d=3,s=0",
         "CGC(1)": "cgc:d=3,s=1", "G-CGC(1)": "g-cgc:d=3,s=1", "CGC(2)": "cgc:d=3,s=2",
         "G-CGC(2)": "g-cgc:d=3,s=2", "AGC": "agc:d=3,lam=6", "G-AGC": "g-agc:d=3,lam=6"}
# `kofn-papers agc-table`, without the slips; equal times stand together.
ORDER = {0.05: ["G-AGC", "G-CGC(1)", "AGC", "CGC(1)", "CGC(0) G-CGC(0)", "uncoded",
                "G-CGC(2)", "CGC(2)"],
         0.10: ["G-AGC", "G-CGC(1)", "AGC", "CGC(1)", "G-CGC(2)", "CGC(2)", "uncoded",
                "CGC(0) G-CGC(0)"]}


class Block(nn.Module):
    """Two convolutions and a shortcut around them."""

    def __init__(self, before, width, stride):
        super().__init__()
        self.way = nn.Sequential(
            nn.Conv2d(before, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width),
            nn.ReLU(), nn.Conv2d(width, width, 3, 1, 1, bias=False),
            nn.BatchNorm2d(width))
        self.round = nn.Sequential() if stride == 1 and before == width else \
            nn.Sequential(nn.Conv2d(before, width, 1, stride, bias=False),
                          nn.BatchNorm2d(width))

    def forward(self, x):
        return torch.relu(self.way(x) + self.round(x))


def resnet18(width=64):
    """The variant for CIFAR-10; with width 64 it has 11,173,962 parameters."""
    sizes = [width, width, 2 * width, 2 * width, 4 * width, 4 * width, 8 * width,
             8 * width]
    blocks = [Block(before, size, 1 if before == size else 2)
              for before, size in zip([width] + sizes, sizes)]
    return nn.Sequential(nn.Conv2d(3, width, 3, 1, 1, bias=False),
                         nn.BatchNorm2d(width), nn.ReLU(), *blocks,
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(8 * width, 10))


def images(file, n):
    """Reads a binary batch of CIFAR-10, or generates images."""
    if file:
        raw = np.fromfile(file, np.uint8)[:n * 3073].reshape(-1, 3073)
        return (torch.from_numpy(raw[:, 1:].reshape(-1, 3, 32, 32) / np.float32(255)),
                torch.from_numpy(raw[:, 0].astype(np.int64)))
    draw = torch.Generator().manual_seed(1)
    labels = torch.randint(10, (n,), generator=draw)
    x = 0.3 * torch.randn(n, 3, 32, 32, generator=draw)
    for k in range(n):
        x[k, labels[k] % 3, 3 * (labels[k] // 3):3 * (labels[k] // 3) + 4] += 1
    return x, labels


class Recorded:
    """Gradients of the parts of some batches along plain training, and the time of one
    part. The workers of every code take their results from here, so that nine codes
    and two probabilities need one training."""

    def __init__(self, width, each, iterations, file):
        torch.manual_seed(1)
        model = resnet18(width)
        self.part = kofn.torch.Part(model, nn.functional.cross_entropy,
                                    images(file, N * each * iterations), N * each)
        flat = kofn.torch._flat
        self.parameters = self.part.trained
        self.values, took = [], []
        for t in range(iterations):
            x = np.concatenate([flat(kofn.torch._trained(model), np.float32),
                                flat(kofn.torch._kept(model), np.float32),
                                np.array([0, t], np.float32)])
            self.values.append([])
            for part in range(N):
                begun = time.process_time()
                self.values[-1].append(self.part(part, N, x))
                took.append(time.process_time() - begun)
            total = np.sum(self.values[-1], axis=0)
            rest = kofn.torch._fill(kofn.torch._trained(model),
                                    x[:self.parameters] -
                                    np.float32(0.1) * total[:self.parameters])
            assert len(rest) == 0
            kofn.torch._fill(kofn.torch._kept(model), total[self.parameters:-1])
        self.seconds = float(np.median(took))
        self.length = self.part.length

    def __call__(self, part, parts, x):
        return self.values[int(x[0])][part]


def groups(name):
    """Returns the groups that decode separately: of three workers, and the last of five."""
    if name.startswith("G-"):
        return [range(3 * h, 3 * h + 3) for h in range(5)] + [range(15, 20)]
    return [range(N)]


def tolerated(name):
    return 0 if name == "uncoded" else D - 1 if "AGC" in name else int(name[-2])


def model_time(name, most, c):
    """Returns the time of an iteration with at most `most` stragglers per group."""
    late = most > tolerated(name)
    if name == "uncoded":
        share = 1.0
    elif "AGC" in name:
        share = 1 / (D - (0 if late else most))
    else:
        share = 1 / (D - tolerated(name))
    computing = c["part"] * (1 if name == "uncoded" else D)
    return (computing + share * c["message"] + c["decoding"] +
            (c["idle"] if late else 0))


def mean_time(name, p, c):
    """Returns the mean over all possible stragglers: the model for each maximum per
    group, times its probability."""
    def below(s):
        return math.prod(sum(math.comb(len(g), k) * p ** k * (1 - p) ** (len(g) - k)
                             for k in range(min(s, len(g)) + 1)) for g in groups(name))
    return sum((below(s) - (below(s - 1) if s else 0)) * model_time(name, s, c)
               for s in range(N + 1))


def events(name, late, c):
    """Returns events for idling: slow by a factor."""
    computing = c["part"] * (1 if name == "uncoded" else D)
    for t, who in enumerate(late, 1):
        for w in who:
            yield f"{t} slow {w} {1 + c['idle'] / computing:.6f}"
            yield f"{t + 1} normal {w}"


def play(name, recorded, late, c, clock="modelled"):
    """Runs rounds of one code. Returns seconds of each, bytes, seconds of decoding, error."""
    seconds, decoding, error = [], [], 0.0
    # Multiply-adds, such as those that mix gradients, cost next to nothing.
    faults = f"bandwidth={c['bandwidth']:.9g},clock={clock},work=1e-6"
    with kofn.Sum(recorded, recorded.length, inputs=1,
                  scheme=CODES[name], workers=N, where="sim", dtype=np.float32,
                  work=N * c["part"] * 1e15, faults=faults, late=-1,
                  events=list(events(name, late, c))) as total:
        for t in range(len(late)):
            k = t % len(recorded.values)
            out = total([k])
            exact = np.sum(recorded.values[k], axis=0, dtype=np.float64)
            error = max(error, float(np.linalg.norm(out - exact) /
                                     np.linalg.norm(exact)))
            seconds.append(total.report.seconds)
            decoding.append(total.report.decoding)
        return seconds, total.totals.received / len(late), min(decoding), error


def ordered(names, times, expected):
    """Counts the pairs that Table VI orders, and those with the same order here."""
    rank = {n: i for i, same in enumerate(expected) for n in same.split()}
    pairs = [(a, b) for a, b in itertools.combinations(names, 2)
             if rank[a] != rank[b]]
    return len(pairs), sum((rank[a] < rank[b]) == (times[a] < times[b])
                           for a, b in pairs)


def table(p, recorded, rounds, names, c):
    rng = np.random.default_rng(7)
    late = [np.flatnonzero(rng.random(N) < p) for _ in range(rounds)]
    print(f"\np = {p:.2f}, {rounds} iterations; seconds of one")
    print(f"{'':10}{'compute':>9}{'MB':>9}{'decode':>9}{'played':>9}{'model':>9}"
          f"{'average':>9}{'error':>9}")
    average, rows = {}, {}
    for name in names:
        own = dict(c, decoding=play(name, recorded, [[]] * 3, c, "measured")[2])
        seconds, received, _, error = play(name, recorded, late, c)
        played = float(np.mean(seconds)) + own["decoding"]
        model = float(np.mean([model_time(name, max(
            sum(w in who for w in g) for g in groups(name)), own) for who in late]))
        average[name] = mean_time(name, p, own)
        rows[name] = (played, model, received, error)
        print(f"{name:10}{own['part'] * (1 if name == 'uncoded' else D):9.3f}"
              f"{received / 1e6:9.2f}{own['decoding']:9.4f}{played:9.3f}{model:9.3f}"
              f"{average[name]:9.3f}{error:9.0e}", flush=True)
    told, right = ordered(names, average, ORDER[p])
    print("in order:", " < ".join(sorted(names, key=average.get)))
    print(f"of {told} pairs that Table VI tells apart {right} stand as there")
    return rows, told, right


def main(words=None):
    a = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    a.add_argument("--width", type=int, default=8, help="of the first stage (8; 64)")
    a.add_argument("--images", type=int, default=2, help="a part (2; 9)")
    a.add_argument("--batches", type=int, default=2, help="that are computed (2)")
    a.add_argument("--rounds", type=int, default=40, help="of each code (40)")
    a.add_argument("--cifar", metavar="FILE", help="data_batch_1.bin (generated)")
    a.add_argument("--codes", nargs="*", default=list(CODES), choices=list(CODES))
    a = a.parse_args(words)
    torch.set_num_threads(1)
    recorded = Recorded(a.width, a.images, a.batches, a.cifar)
    message = 13 / 2.45 * D * recorded.seconds
    bandwidth = recorded.length * 4 / message
    c = {"part": recorded.seconds, "message": message, "bandwidth": bandwidth,
         "idle": 16 / 2.45 * D * recorded.seconds,
         "decoding": 0.0}
    print(f"{recorded.parameters} parameters; a part takes {recorded.seconds:.4f} s, "
          f"a gradient as a message {message:.3f} s")
    return [table(p, recorded, a.rounds, a.codes, c) for p in (0.05, 0.10)]


if __name__ == "__main__":
    main()
