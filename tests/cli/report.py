"""report.py -- what a report of a run contains, read in two ways that share no code with
kofn: from the page, and from the run's journal and the steps of kofn replay.

    report.py PAGE JOURNAL [STEPS]    compares every cell, and prints the numbers of fates
    report.py PAGE                    prints the facts of the page
"""
import base64
import json
import math
import re
import struct
import sys
import zlib

FATES = ("absent idle used partly late cancelled unfinished failed lost wrong excluded").split()


def read_page(path):
    """Returns the facts, and the sections of the data (docs/journal.md)."""
    text = open(path, encoding="utf-8").read()
    facts, = re.findall(r'<script type="application/json" class="run">(.*?)</script>', text, re.S)
    packed, = re.findall(r'<script type="text/plain" class="cells">(.*?)</script>', text, re.S)
    page = json.loads(facts)
    data = zlib.decompress(base64.b64decode(packed, validate=True))
    R, W, M, at = page["rounds"], page["workers"], page["marks"], 0
    for name, kind, n in (("from", "d", R), ("to", "d", R), ("at", "d", M), ("label", "I", R),
                          ("status", "i", R), ("most", "I", R), ("who", "I", M),
                          ("when", "I", M), ("joined", "I", M), ("fate", "B", W * R),
                          ("time", "B", W * R), ("work", "B", W * R * page["uneven"])):
        page[name] = struct.unpack_from(f"<{n}{kind}", data, at)
        at += n * struct.calcsize(kind)
    assert at == len(data), (at, len(data))
    return page


def fate_of(outcomes):
    for o in ("wrong", "lost", "failed", "out"):
        if o in outcomes:
            return "unfinished" if o == "out" else o
    if "used" in outcomes:
        return "partly" if "cancelled" in outcomes else "used"
    return "cancelled" if "cancelled" in outcomes else "late"


class Run:
    """The tasks of a run.  The journal has the events, and STEPS the actions."""

    def __init__(self, journal, steps):
        self.here, self.ended, self.open, self.columns, self.marks = set(), {}, {}, [], []
        self.checks, self.now, self.most = {}, 0, 0
        lines = [line for line in open(journal) if line.endswith("\n")]
        self.first = json.loads(lines[0])["workers"]
        actions = {}
        for line in steps:
            m = re.match(r"line (\d+),", line)
            number = int(m[1]) if m else number
            if line.startswith("  "):
                actions.setdefault(number, []).append(line)
        for i, line in enumerate(lines[1:], 2):
            e = json.loads(line)
            if e.get("own") == "finished":
                break
            self.note(e) if "own" in e else self.event(e)
            for action in actions.get(i, []):
                self.act(action)
        else:
            for n in sorted(self.open):
                self.over(n, max([0] + [c[0] for c in self.columns]) + 1, self.now)

    def find(self, k):
        return next((t for p in self.open.values() for j, t in p.items() if j == k), None)

    def end(self, t, how):
        t["outcome"], t["over"] = how, self.now
        t["since"] = max(t["sent"], self.ended.get(t["w"], -1))
        self.ended[t["w"]] = self.now

    def lose(self, w):
        for p in self.open.values():
            for t in p.values():
                if t["w"] == w and t["outcome"] == "out":
                    self.end(t, "lost")

    def event(self, e):
        self.now = e["t"]
        kind, w = e["ev"], e.get("w")
        if kind in ("joined", "left", "unresponsive"):
            joined = kind == "joined"
            self.lose(w) if not joined else None
            (self.here.add if joined else self.here.discard)(w)
            self.most = max(self.most, w + 1)
            if not (joined and not self.columns and w < self.first):
                self.marks.append((w, len(self.columns), int(joined), self.now))
        elif kind == "begin" and e["n"]:
            self.open.setdefault(e["n"], {})
        elif kind in ("result", "failed"):
            t = self.open.get(e["n"], {}).get(e["k"])
            if t and t["w"] == w and t["outcome"] in ("out", "cancelled"):
                self.end(t, "came" if kind == "result" else "failed")
        elif kind == "verdict":
            bad = e["bad"][:len(e["bad"]) - e.get("doubted", 0)]
            for b in bad:
                self.find(self.checks[e["n"], e["k"]][b])["outcome"] = "wrong"

    def act(self, line):
        if m := re.match(r"  work for worker (\d+): task (\d+) of product (\d+), .*strips (-?\d+)-(-?\d+)",
                         line):
            w, k, n, lo, hi = map(int, m.groups())
            self.open.setdefault(n, {})[k] = {"w": w, "sent": self.now, "outcome": "out",
                                              "work": max(1, hi + 1 - lo)}
        elif m := re.match(r"  cancel task (\d+) of", line):
            t = self.find(int(m[1]))
            if t and t["outcome"] == "out":
                self.end(t, "cancelled")
        elif m := re.match(r"  (?:decode|check (\d+) of) product (\d+).*of tasks (.*)", line):
            tasks = [int(k) for k in m[3].split()]
            if m[1]:
                self.checks[int(m[2]), int(m[1])] = tasks
            for k in tasks:
                t = self.find(k)
                if t and t["outcome"] == "came":
                    t["outcome"] = "used"
        elif m := re.match(r"  give up worker (\d+)", line):
            self.lose(int(m[1]))

    def note(self, e):
        if e["own"] == "sent" and self.open.get(e["n"], {}).get(e["k"]):
            self.open[e["n"]][e["k"]]["sent"] = e["t"]
        if e["own"] == "over":
            self.over(e["n"], e["round"], e["t"]) if e["round"] else None
            self.open.pop(e["n"], None)

    def over(self, n, label, now):
        cells = {}
        for t in self.open.get(n, {}).values():
            c = cells.setdefault(t["w"], {"seen": set(), "from": [], "to": [], "work": 0})
            out = t["outcome"] == "out"
            c["seen"].add(t["outcome"])
            c["from"].append(max(t["sent"], self.ended.get(t["w"], -1)) if out else t["since"])
            c["to"].append(now if out else t["over"])
            c["work"] += t["work"]
        most = max((c["work"] for c in cells.values()), default=0)
        self.columns.append((label, most, {w: (fate_of(c["seen"]), max(c["to"]) - min(c["from"]),
                                               c["work"]) for w, c in cells.items()},
                             set(self.here)))
        self.most = max([self.most] + [w + 1 for w in cells])


def compare(page, run):
    R, seen = page["rounds"], {}
    assert R == len(run.columns) and page["workers"] == run.most
    assert list(page["label"]) == [c[0] for c in run.columns]
    marks = list(zip(page["who"], page["when"], page["joined"]))
    assert marks == [m[:3] for m in run.marks], (marks, run.marks)
    assert all(abs(a - m[3] * 1e-9) < 1e-12 for a, m in zip(page["at"], run.marks))
    for w in range(page["workers"]):
        wrong = out = False
        for r, (label, most, cells, here) in enumerate(run.columns):
            i = w * R + r
            fate, took, work = cells.get(w, ("idle" if w in here else "absent", 0, 0))
            # A worker that was wrong may be excluded, for ever; the journal does not say so.
            if fate == "idle" and wrong and FATES[page["fate"][i]] == "excluded":
                fate = "excluded"
            assert not out or fate in ("excluded", "absent"), (w, label, fate)
            wrong, out = wrong or fate == "wrong", out or fate == "excluded"
            assert FATES[page["fate"][i]] == fate, (w, label, FATES[page["fate"][i]], fate)
            code = page["time"][i]
            assert (code == 0) == (took <= 0), (w, label, code, took)
            if code:
                shown = page["least"] * page["ratio"] ** (code - 1)
                # The page rounds to its steps, and the run to 95 steps an octave.
                off = abs(math.log(shown / (took * 1e-9)))
                assert off <= math.log(page["ratio"]) / 2 + math.log(2) / 180, (shown, took)
            if page["uneven"]:
                share = round(255 * work / most) if most else 0
                assert abs(page["work"][i] - share) <= 1, (w, label, page["work"][i], work, most)
            seen[fate] = seen.get(fate, 0) + 1
            assert page["most"][r] == most
    return seen


def main():
    page = read_page(sys.argv[1])
    if len(sys.argv) > 2:
        page = compare(page, Run(sys.argv[2], sys.stdin))
    else:
        page = {k: page[k] for k in ("workers", "rounds", "names", "captions", "scheme", "verdict",
                                    "whole", "figures")}
    print(json.dumps(page, sort_keys=True))


if __name__ == "__main__":
    main()
