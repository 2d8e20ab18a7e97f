"""openmetrics -- read OpenMetrics 1.0 text as strictly as its grammar and its
rules on families say, independent of what kofn writes.

    openmetrics.py FILE EXPRESSION   with m: {(name, labels): value}, f: families
"""
import re
import sys

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
NUMBER = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?[Ii]nf|NaN"
SAMPLE = re.compile(
    rf"({NAME})(?:\{{((?:{LABEL}(?:,{LABEL})*)?)\}})? ({NUMBER})(?: ({NUMBER}))?")
META = re.compile(rf"# (TYPE|UNIT|HELP) ({NAME}) ?(.*)")
SUFFIX = {"counter": {"_total", "_created"}, "gauge": {""}, "info": {"_info"},
          "summary": {"_count", "_sum", "_created", ""}, "unknown": {""},
          "stateset": {""}, "histogram": {"_count", "_sum", "_bucket", "_created"}}


def read(text):
    assert text.endswith("# EOF\n"), "it must end with # EOF"
    family, families, samples, started = None, {}, {}, False
    for line in text[:-len("# EOF\n")].split("\n")[:-1]:
        meta = META.fullmatch(line)
        if meta:
            key, name, rest = meta.groups()
            if family is None or name != family["name"]:
                assert name not in families, f"{name} is not in one piece"
                family = {"name": name, "TYPE": "unknown", "UNIT": ""}
                families[name], started = family, False
            assert not started, f"{line}: after its samples"
            assert key not in family.get("seen", ()), f"{line}: twice"
            family.setdefault("seen", set()).add(key)
            family[key] = rest
            if key == "TYPE":
                assert rest in SUFFIX, line
            if key == "UNIT" and rest:
                assert name.endswith("_" + rest), line
            if key == "HELP":
                assert not re.search(r'\\(?![\\n"])', rest), line
            continue
        sample = SAMPLE.fullmatch(line)
        assert sample, f"neither a sample nor a description: {line!r}"
        name, labels, value, _ = sample.groups()
        assert family and any(name == family["name"] + s
                              for s in SUFFIX[family["TYPE"]]), line
        started = True
        labels = labels or ""
        keys = re.findall(r'([a-zA-Z_]\w*)="', re.sub(r'\\.', "", labels))
        assert len(keys) == len(set(keys)), line
        assert (name, labels) not in samples, f"{line}: twice"
        samples[name, labels] = float(value)
        if family["TYPE"] in ("counter", "summary", "histogram"):
            assert float(value) >= 0, line
        if family["TYPE"] == "info":
            assert float(value) == 1, line
    taken = set()
    for name, f in families.items():
        for full in {name + s for s in SUFFIX[f["TYPE"]]} | {name}:
            assert full not in taken, f"{full} could be of two families"
            taken.add(full)
    return samples, families


if __name__ == "__main__":
    m, f = read(open(sys.argv[1], newline="").read())
    if not eval(sys.argv[2]):
        sys.exit(f"{sys.argv[2]}: {m}")
