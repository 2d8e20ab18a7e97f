"""prometheus -- reads the text format of Prometheus (0.0.4) as strictly as its description,
independently of kofn's writer. It also checks promtool's rules for names.

    prometheus.py FILE EXPRESSION   with m: {(name, labels): value}, f: families
"""
import re
import sys

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
NUMBER = r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]Inf|NaN"
SAMPLE = re.compile(
    rf"({NAME})(?:\{{((?:{LABEL}(?:,{LABEL})*)?)\}})? ({NUMBER})")
META = re.compile(rf"# (TYPE|HELP) ({NAME}) (.+)")
# Suffixes of a sample's name, by the type of its family.
SUFFIX = {"counter": {""}, "gauge": {""}, "untyped": {""},
          "summary": {"", "_count", "_sum"},
          "histogram": {"_count", "_sum", "_bucket"}}


def read(text):
    assert text.endswith("\n"), "the last line must end"
    family, families, samples = None, {}, {}
    for line in text[:-1].split("\n"):
        meta = META.fullmatch(line)
        if meta:
            key, name, rest = meta.groups()
            if family is None or name != family["name"]:
                assert name not in families, f"{name} is not in one piece"
                family = {"name": name, "samples": 0}
                families[name] = family
            assert not family["samples"], f"{line}: after its samples"
            assert key not in family, f"{line}: twice"
            family[key] = rest
            if key == "TYPE":
                assert rest in SUFFIX, f"{line}: no such type"
                assert name.endswith("_total") == (rest == "counter"), line
            else:
                assert not re.search(r"\\(?![\\n])", rest), line
            continue
        sample = SAMPLE.fullmatch(line)
        assert sample, f"neither a sample nor a description: {line!r}"
        name, labels, value = sample.groups()
        assert family and "TYPE" in family and "HELP" in family, line
        assert any(name == family["name"] + s for s in SUFFIX[family["TYPE"]]), line
        family["samples"] += 1
        labels = labels or ""
        keys = re.findall(r'([a-zA-Z_]\w*)="', re.sub(r'\\.', "", labels))
        assert len(keys) == len(set(keys)), line
        assert (name, labels) not in samples, f"{line}: twice"
        samples[name, labels] = float(value)
        if family["TYPE"] != "gauge":
            assert float(value) >= 0, line
    taken = set()
    for name, f in families.items():
        assert f["samples"], f"{name} has no sample"
        for full in {name + s for s in SUFFIX[f["TYPE"]]}:
            assert full not in taken, f"{full} could be of two families"
            taken.add(full)
    return samples, families


if __name__ == "__main__":
    m, f = read(open(sys.argv[1], newline="").read())
    if not eval(sys.argv[2]):
        sys.exit(f"{sys.argv[2]}: {m}")
