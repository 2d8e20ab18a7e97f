# %% [markdown]
# # Any k of n workers are enough
#
# A notebook as a script: Jupyter (with jupytext), VS Code and Spyder run it cell by
# cell, and `python3 notebook.py` whole. The pictures need matplotlib (Debian:
# python3-matplotlib); `python3 notebook.py rounds.svg` writes the first into a file.

# %%
import pathlib
import sys

try:
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
except NameError:  # in a notebook: started with PYTHONPATH, or installed
    pass

import kofn
import numpy as np

try:
    import matplotlib.pyplot as plt
except ImportError:
    plt = None

# %% [markdown]
# ## A product, and its report
# The report of a round is a table in Jupyter.

# %%
rng = np.random.default_rng(1)
X, w = rng.standard_normal((8000, 800)), np.ones(800)
with kofn.Matrix(X, scheme="mds:k=5", workers=8) as A:
    y = A @ w
    report = A.report
print("differs from NumPy's by", f"{np.abs(y - X @ w).max():.0e}")
report

# %% [markdown]
# ## Sixty rounds with faults
# Worker 2 becomes twenty times slower in round 15. Worker 6 is gone from round 30 on,
# which would end an uncoded job. In round 45 another worker joins.


# %%
def seconds_of(scheme, rounds=60):
    events = ["15 slow 2 20", "30 leave 6", "45 join"]
    spent = []
    with kofn.Matrix(X, scheme=scheme, workers=8, late=-1, events=events) as A:
        try:
            for _ in range(rounds):
                assert np.allclose(A @ w, X @ w)
                spent.append(A.report.seconds)
        except kofn.TooFewWorkers as e:
            print(f"{scheme} ends in round {len(spent) + 1}: {e}")
    return np.array(spent)


spent = {scheme: seconds_of(scheme) for scheme in ("uncoded", "mds:k=5")}
for scheme, s in spent.items():
    print(f"{scheme:8}", *(f"{1000 * np.median(s[a:b]):.2f} ms"
                           for a, b in ((0, 14), (14, 29), (29, 44), (44, 60))
                           if a < len(s)))

# %%
if plt:
    plt.rcParams["svg.fonttype"] = "none"
    fig, ax = plt.subplots(figsize=(7, 3), layout="constrained")
    for scheme, s in spent.items():
        ax.plot(np.arange(1, len(s) + 1), 1000 * s, ".-", label=scheme, lw=1)
    for at, what in ((15, "2 becomes slow"), (30, "6 is gone"), (45, "another comes")):
        ax.axvline(at, color="0.7", lw=1)
        ax.annotate(what, (at, 1), (3, -10), xycoords=("data", "axes fraction"),
                    textcoords="offset points", color="0.4", size=8)
    end = spent["uncoded"]
    ax.plot(len(end), 1000 * end[-1], "x", color="C0", ms=10)
    ax.set_ylim(0, 1.15 * 1000 * max(map(np.max, spent.values())))
    ax.set_xlabel("round")
    ax.set_ylabel("milliseconds")
    ax.legend(loc="lower left")
    if sys.argv[1:2] and sys.argv[1].endswith(".svg"):
        fig.savefig(sys.argv[1])

# %% [markdown]
# ## A faulty worker is located
# Worker 5 answers wrongly from the first round on. The result is right all the same.

# %%
with kofn.Matrix(X, where="sim", scheme="mds:k=5", workers=8,
                 errors="adversarial", events=["1 corrupt 5"]) as A:
    print("right:", np.allclose(A @ w, X @ w), "- liars:", A.report.liars)

# %% [markdown]
# ## Checking a product from elsewhere
# The product comes from a GPU, another BLAS or another cluster. Is it right, and if
# not, which entries are wrong?

# %%
B = rng.standard_normal((800, 30))
C = X @ B
C[1234, 7] += 1e-3
found = kofn.check_product(X, B, C)
print("wrong entries:", found.entries)
print("corrected:", np.allclose(found.corrected(C), X @ B, atol=1e-9))
