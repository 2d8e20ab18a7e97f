#!/usr/bin/python3
"""Repeats short runs of the command, each with another allocation that fails: alone,
or with all that follow it.

Every run must end, and not by a signal.  Status 0 needs the right answer.  Another
status needs a message of one line, and every file that is left must be complete.  A
part of the allocations is tried; KOFN_TEST_SCALE=1000 tries all.

usage: every_allocation.py KOFN FAILING.SO
"""
import filecmp
import json
import os
import shutil
import subprocess
import sys
import tempfile

import numpy as np

kofn, shim = map(os.path.abspath, sys.argv[1:3])
scale = float(os.environ.get("KOFN_TEST_SCALE", "1"))
tries = max(2, int(12 * scale))  # for each run and mode of failure


def report(*words):
    print(*words, flush=True)


def run(words, fail_at=0, fail_all=False, count=None, timeout=100):
    env = dict(os.environ, LD_PRELOAD=shim, OPENBLAS_NUM_THREADS="1")
    if fail_at:
        env["KOFN_FAIL_AT"] = str(fail_at)
    if fail_all:
        env["KOFN_FAIL_ALL"] = "1"
    if count:
        env["KOFN_FAIL_COUNT"] = count
    return subprocess.run([kofn] + words, env=env, timeout=timeout,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True)


def near(a, b):
    return np.abs(a - b).max() <= 1e-9 * max(1e-300, np.abs(b).max())


def same_numbers(made, right):
    return near(np.load(made), np.load(right))


def same_words(made, right):
    return filecmp.cmp(made, right, shallow=False)


def same_checkpoint(made, right):
    """True if the checkpoint is complete, or if there is none."""
    name = os.path.join(made, "checkpoint.json")
    if not os.path.exists(name):
        return True
    a = json.load(open(name))
    b = json.load(open(os.path.join(right, "checkpoint.json")))
    return (a["fingerprint"] == b["fingerprint"] and a["job"] == b["job"] and
            (a["done"] == 0 or [f["name"] for f in a["files"]] == [f["name"] for f in b["files"]]))


def same_model(made, right):
    """True if the model is complete, or if there is none."""
    if not os.path.exists(os.path.join(made, "model.json")):
        return True
    return (same_index(made, right) and
            all(same_numbers(os.path.join(made, w), os.path.join(right, w))
                for w in ("W1.npy", "W2.npy")))


def same_index(made, right):
    """True if the indexes are equal except for the digests of weights.

    Rounding of weights depends on the order of answers.  `predict` checks that the
    digests fit the files."""
    a, b = (json.load(open(os.path.join(m, "model.json"))) for m in (made, right))
    for o in (a, b):
        o["digest"] = ""
        o["files"] = [f["name"] for f in o["files"] if f["digest"]]
    return a == b and run(["predict", made, "X.npy", "-q", "-o",
                           "../p.npy"]).returncode == 0


def reported(p):
    """True if there are messages: one for the failure, maybe one for unsaved files."""
    lines = p.stderr.splitlines()
    return p.returncode == 0 or (1 <= len(lines) <= 3 and all(
        x.startswith("kofn: ") and len(x) > 10 for x in lines))


class Run:
    """A command and its output files: name -> function that compares."""

    def __init__(self, words, **files):
        self.words = words.split()
        self.files = {k.replace("_", "."): v for k, v in files.items()}
        self.name = self.words[0] + (" " + self.words[1]
                                     if self.words[0] == "gen" else "")

    def clear(self):
        for name in os.listdir("."):
            if name not in INPUTS:
                (shutil.rmtree if os.path.isdir(name) else os.remove)(name)

    def learn(self):
        """Runs without a failure and keeps the output.  Returns the allocations."""
        self.clear()
        p = run(self.words, count="../count")
        assert p.returncode == 0, (self.words, p.stderr)
        self.right = os.path.join("..", "right", str(id(self)))
        os.makedirs(self.right)
        for name in self.files:
            os.rename(name, os.path.join(self.right, name))
        self.out = p.stdout
        n = int(open("../count").read())
        assert n > 0 or self.name == "keygen", "nothing is counted"
        return n

    def wrong(self, p):
        """Returns the fault of a run that ended, or None."""
        if p.returncode < 0 or p.returncode >= 126:
            return "ended by a signal"
        for name, same in self.files.items():
            if not os.path.exists(name):
                if p.returncode == 0:
                    return name + " is missing"
            elif not same(name, os.path.join(self.right, name)):
                return name + " is wrong"
        left = set(os.listdir(".")) - INPUTS - set(self.files)
        if left:
            return "unexpected files: %s" % left
        if p.returncode == 0 and "--json" in self.words:
            if json.loads(p.stdout).keys() != json.loads(self.out).keys():
                return "another report"
        elif p.returncode == 0 and p.stdout != self.out:
            return "another output"
        return None if reported(p) else "no message of one line"

    def attempt(self, at, fail_all):
        self.clear()
        try:
            p = run(self.words, at, fail_all)
        except subprocess.TimeoutExpired:
            return "it hangs"
        bad = self.wrong(p)
        return bad and "%s (status %d): %s" % (bad, p.returncode,
                                               p.stderr[:300])


class Worker(Run):
    """A worker with failing memory.  If it ends, another one does its work.  If it has
    no memory for the coordinator's last packet, it waits for it until a timeout."""

    def __init__(self):
        super().__init__("worker ipc://socket -q --once --patience 30",
                         y_npy=same_numbers)

    def coordinator(self):
        return subprocess.Popen(
            [kofn, "matvec", "X.npy", "w.npy", "-q", "-o", "y.npy", "-n", "1",
             "-p", "ipc://socket", "--lease", "5"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def learn(self):
        self.clear()
        with self.coordinator() as c:
            run(self.words, count="../count")
            assert c.wait(100) == 0, c.stderr.read()
        self.right = os.path.join("..", "right", "worker")
        os.makedirs(self.right)
        os.rename("y.npy", os.path.join(self.right, "y.npy"))
        return int(open("../count").read())

    def attempt(self, at, fail_all):
        self.clear()
        with self.coordinator() as c:
            try:
                p = run(self.words, at, fail_all)
                if c.poll() is None and p.returncode:
                    subprocess.run([kofn] + self.words, timeout=100)
                ended = c.wait(100)
            except subprocess.TimeoutExpired:
                c.kill()
                return "it hangs"
            if ended:
                return "the coordinator: " + c.stderr.read()
        if p.returncode < 0 or p.returncode >= 126:
            return "ended by a signal: %s" % p.stderr[:300]
        if not same_numbers("y.npy", os.path.join(self.right, "y.npy")):
            return "a wrong answer"
        return None if reported(p) else "no message of one line: " + p.stderr


def inputs():
    def gen(words):
        p = subprocess.run([kofn] + words.split(), stderr=subprocess.PIPE,
                           text=True)
        assert p.returncode == 0, p.stderr

    gen("gen matrix 40 6 -o X.npy -q")
    gen("gen vector 6 -o w.npy -q")
    gen("gen matrix 6 3 -o B.npy -q --seed 3")
    gen("gen matrix 12 12 -o S0.npy -q")
    gen("gen graph 40 120 -o G.mtx -q")
    X, S = np.load("X.npy"), np.load("S0.npy")
    np.save("S.npy", S @ S.T)
    np.save("y0.npy", X @ np.load("w.npy"))
    np.save("y1.npy", (np.load("y0.npy") > 0).astype(float))
    with open("E", "w") as f:
        f.write("1 leave 1\n2 join\n")
    gen("matvec X.npy w.npy -p sim -n 4 -s mds:k=2 -r 3 -e E --journal j -q")
    gen("matmul X.npy B.npy -s uncoded -n 1 -o c0.npy -q")
    gen("regress X.npy y0.npy -p sim -n 3 -o model.npy -q")


os.environ.pop("KOFN_TEST_SCALE", None)
top = tempfile.mkdtemp(prefix="kofn-memory-")
bad = []
try:
    os.makedirs(os.path.join(top, "at"))
    os.chdir(os.path.join(top, "at"))
    inputs()
    INPUTS = set(os.listdir("."))
    runs = [
        Run("matvec X.npy w.npy -o y.npy -q", y_npy=same_numbers),
        Run("matvec X.npy w.npy -o y.npy --json -p sim -n 5 -s mds:k=2 "
            "--errors probabilistic -w corrupt=0.2 -r 2 --metrics m.prom "
            "--trace t.json --journal jj", y_npy=same_numbers,
            m_prom=lambda a, b: True, t_json=lambda a, b: True,
            jj=lambda a, b: True),
        Run("matvec X.npy w.npy -o y.npy -q --checkpoint C", y_npy=same_numbers,
            C=same_checkpoint),
        Run("matmul X.npy B.npy -o c.npy -q -s polynomial:m=2,p=1 -n 4",
            c_npy=same_numbers),
        Run("regress X.npy y0.npy -o r.npy -q -n 3",
            r_npy=lambda a, b: np.abs(np.load(a) - np.load(b)).max() < 1e-6),
        Run("train X.npy y1.npy -o M --layers 6-3-2 --batch 20 --epochs 1 -q -n 3 "
            "--checkpoint D --history h.csv", M=same_model, D=same_checkpoint,
            h_csv=lambda a, b: True),
        # predict with a folder is left out: Jansson 2.14 fails an assertion if it
        # has no memory for the digits of a number
        Run("power S.npy -o v.npy -q -p sim", v_npy=lambda a, b: np.abs(
            np.abs(np.load(a)) - np.abs(np.load(b))).max() < 1e-6),
        Run("pagerank G.mtx -o p.npy -q -p sim", p_npy=same_numbers),
        Run("gen matrix 30 4 -o z.npy -q", z_npy=same_words),
        Run("gen graph 30 90 -o g.mtx -q", g_mtx=same_words),
        Run("schemes"),
        Run("replay j"),
        Run("check X.npy B.npy c0.npy -o d.npy -q", d_npy=same_numbers),
        Run("predict X.npy model.npy -o q.npy -q", q_npy=same_numbers),
        Run("keygen keys -q", keys=lambda a, b: True),
        Worker(),
    ]
    for r in runs:
        n = r.learn()
        step = max(1, n // tries)
        tried = 0
        for fail_all in (False, True):
            first = 1 if fail_all or step == 1 else 1 + step // 2
            for at in range(first, n + 1, step):
                found = r.attempt(at, fail_all)
                tried += 1
                if found:
                    bad.append((r.name, at, fail_all, found))
                    report("%s: allocation %d%s: %s" %
                           (" ".join(r.words), at, " and all after it"
                            if fail_all else "", found))
        report("%s: %d of %d allocations failed" % (r.name, tried, 2 * n))
finally:
    os.chdir("/")
    shutil.rmtree(top)
sys.exit(1 if bad else 0)
