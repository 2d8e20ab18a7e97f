"""Trains a network that reads digits on eight processes. Two of them are killed.

    python3 torch_digits.py [FOLDER]

FOLDER has MNIST's train-images-idx3-ubyte and train-labels-idx1-ubyte. Without it, the
digits are drawn, as on pocket calculators and badly printed.
"""
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))

import kofn.torch
import numpy as np
import torch
from torch import nn

# The strokes of each digit, of seven: top, middle, bottom; then left and right, above
# and below.
STROKES = [0b1011111, 0b0000011, 0b1110110, 0b1110011, 0b0101011, 0b1111001,
           0b1111101, 0b1000011, 0b1111111, 0b1111011]


def drawn(n, seed=1):
    """Returns n images of 28 x 28 and their digits."""
    rng = np.random.default_rng(seed)
    images = 0.2 * rng.random((n, 28, 28), np.float32)
    labels = rng.integers(0, 10, n)
    for image, digit in zip(images, labels):
        y, x = rng.integers(2, 7, 2)
        spots = [(0, 0, 1, 12), (8, 0, 1, 12), (16, 0, 1, 12), (0, 0, 8, 1),
                 (8, 0, 8, 1), (0, 11, 8, 1), (8, 11, 8, 1)]
        for k, (r, c, h, w) in enumerate(spots):
            if STROKES[digit] >> (6 - k) & 1:
                image[y + r:y + r + h + 1, x + c:x + c + w + 1] += 0.7
    return torch.from_numpy(images)[:, None], torch.from_numpy(labels)


def read(folder):
    """Reads MNIST as published."""
    images = np.fromfile(f"{folder}/train-images-idx3-ubyte", np.uint8)[16:]
    labels = np.fromfile(f"{folder}/train-labels-idx1-ubyte", np.uint8)[8:]
    return (torch.from_numpy(images.reshape(-1, 1, 28, 28) / np.float32(255)),
            torch.from_numpy(labels.astype(np.int64)))


torch.manual_seed(1)
model = nn.Sequential(nn.Conv2d(1, 8, 5), nn.ReLU(), nn.MaxPool2d(4), nn.Flatten(),
                      nn.Linear(288, 10))
images, labels = read(sys.argv[1]) if len(sys.argv) > 1 else drawn(1200)
data, test = (images[200:], labels[200:]), (images[:200], labels[:200])
optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
with kofn.torch.Training(model, nn.functional.cross_entropy, data, batch=100,
                         scheme="agc:d=3", workers=8) as t:
    losses = t.fit(optimiser, epochs=1)
    for child in t.processes[2], t.processes[5]:
        os.kill(child, signal.SIGKILL)
    losses += t.fit(optimiser, epochs=2, first=1)
    right = (model(test[0]).argmax(1) == test[1]).float().mean()
    print(f"loss {losses[0]:.2f} to {losses[-1]:.2f};",
          f"{right:.0%} of digits not seen before are read right;",
          t.totals.left, "workers were lost")
