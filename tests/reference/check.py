#!/usr/bin/env python3
"""check.py -- compares the pages of the reference with the library and its headers.

    check.py WHAT BUILD SOURCE    WHAT is symbols, sections, statuses or links

Prints faults, and exits with 1 if there are any.  It shares no code with
scripts/reference.
"""
import html.parser
import pathlib
import re
import subprocess
import sys

MAN = ["NAME", "SYNOPSIS", "DESCRIPTION", "RETURN VALUE", "EXAMPLE", "SEE ALSO"]
OPEN = {"meta", "link", "br"}  # tags without an end


def symbols(build):
    """Returns what libkofn exports, but for its plugin."""
    lines = subprocess.run(["nm", "-D", "--defined-only", "--with-symbol-versions",
                            build / "libkofn.so"],
                           check=True, capture_output=True, text=True).stdout
    return [line.split()[-1].split("@")[0] for line in lines.splitlines()
            if line.split()[-2] != "A" and "KOFN_PRIVATE" not in line]


def prototypes(source):
    """Returns the declaration of each exported symbol, without blanks."""
    found = {}
    for path in source.joinpath("include").rglob("*.h"):
        text = re.sub(r"/\*.*?\*/|^#.*?(?<!\\)$", "", path.read_text(), flags=re.S | re.M)
        for m in re.finditer(r"(extern )?KOFN_API\s([^;{]*);", text):
            name = re.search(r"(kofn_\w+)(\(|\[|$)", m.group(2)).group(1)
            found[name] = re.sub(r"\s", "", (m.group(1) or "") + m.group(2))
    return found


def man_sections(path):
    """Returns the text of each section of a man page."""
    parts = re.split(r'^\.SH "?([^"\n]+)"?\n', path.read_text(), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


class Page(html.parser.HTMLParser):
    """The headings, links and faults of a page."""

    def __init__(self, path):
        super().__init__()
        self.stack, self.heads, self.links, self.faults = [], {}, [], []
        self.heading = None
        self.feed(path.read_text())
        if self.stack:
            self.faults.append(f"{self.stack} has no end")

    def handle_starttag(self, tag, attrs):
        if tag not in OPEN:
            self.stack.append(tag)
        if tag == "h2":
            self.heading = ""
        self.links += [value for name, value in attrs if name == "href"]

    def handle_endtag(self, tag):
        if not self.stack or self.stack.pop() != tag:
            self.faults.append(f"an unexpected </{tag}>")
        if tag == "h2":
            self.heads[self.heading] = ""

    def handle_data(self, data):
        if self.stack and self.stack[-1] == "h2":
            self.heading += data
        elif self.heads:
            self.heads[self.heading] += data


def check_symbols(reference, names, _):
    for name in names:
        for page in (f"man3/{name}.3", f"html/{name}.html"):
            if not reference.joinpath(page).is_file():
                yield f"there is no {page}"
        for index in ("man3/kofn.3", "html/index.html"):
            if not re.search(rf"(?<![a-z_]){name}\b",
                             reference.joinpath(index).read_text()):
                yield f"{index} lacks {name}"


def check_sections(reference, names, source):
    declared = prototypes(source)
    for name in names:
        man = man_sections(reference / f"man3/{name}.3")
        page = Page(reference / f"html/{name}.html")
        for title in MAN:
            if not man.get(title, "").strip():
                yield f"{name}.3 has no {title}"
            if not page.heads.get(title, "").strip():
                yield f"{name}.html has no {title}"
        shown = re.sub(r"#include <\S+>|\s", "", page.heads.get("SYNOPSIS", "")).rstrip(";")
        if shown != declared[name]:
            yield f"{name}.html has {shown}, and its header {declared[name]}"
        plain = re.sub(r"\\(-|&)", lambda m: m.group(1).strip("&"), man.get("SYNOPSIS", ""))
        if declared[name] not in re.sub(r"\s", "", plain):
            yield f"{name}.3 has another prototype than its header"
        if not re.search(rf"\b{name}\b", page.heads.get("EXAMPLE", "")):
            yield f"the example of {name} does not use it"


def of_comment(source, name, known):
    """Returns the statuses with a reason in the comment before a function."""
    for path in source.joinpath("include").rglob("*.h"):
        text = path.read_text()
        m = re.search(rf"/\*((?:(?!\*/).)*)\*/\s*KOFN_API[^;]*?\b{name}\(", text, re.S)
        if m and ";" not in text[m.end(1):m.end()]:
            return [s for group in re.findall(r"((?:KOFN_[A-Z]+,?\s(?:\* )?)*KOFN_[A-Z]+):",
                                              m.group(1))
                    for s in re.findall(r"KOFN_[A-Z]+", group) if s in known]
    return []


def check_statuses(reference, names, source):
    declared = prototypes(source)
    table = re.search(r"#define KOFN_STATUS_MAP\(X\)(.*?)\n\n",
                      source.joinpath("include/kofn/base.h").read_text(), re.S).group(1)
    known = {"KOFN_" + name for name in re.findall(r"X\((\w+),", table)}
    known_to_some = set()
    for name in names:
        man = man_sections(reference / f"man3/{name}.3")["RETURN VALUE"]
        listed = [s for line in re.findall(r"^\.TP\n\\fB(.*)\\fR$", man, re.M)
                  for s in re.findall(r"\w*KOFN_\w+", line)]
        yield from (f"{name}: {s} is no status" for s in listed if s not in known)
        fallible = declared[name].startswith("kofn_status") and name != "kofn_say"
        yield from (f"{name} lacks {s}, which the header has" for s in
                    of_comment(source, name, known) if fallible and s not in listed)
        if fallible and "KOFN_OK" not in listed:
            yield f"{name} lists no KOFN_OK"
        if not fallible and listed:
            yield f"{name} lists statuses and returns none"
        known_to_some.update(listed)
    yield from (f"no function lists {s}" for s in known - known_to_some)


def check_links(reference, *_):
    for path in sorted(reference.joinpath("html").glob("*.html")):
        page = Page(path)
        yield from (f"{path.name}: {fault}" for fault in page.faults)
        yield from (f"{path.name}: a link to {link}" for link in page.links
                    if not path.with_name(link).is_file())
    for path in sorted(reference.joinpath("man3").glob("*.3")):
        for name in re.findall(r"(kofn\w*)(?:\\fR| )\(3\)", path.read_text()):
            if not path.with_name(name + ".3").is_file():
                yield f"{path.name}: a reference to {name}(3)"


def main(what, build, source):
    build, source = pathlib.Path(build), pathlib.Path(source)
    check = globals()["check_" + what]
    names = symbols(build)
    if len(names) < 100:
        sys.exit(f"nm finds only {len(names)} symbols")
    faults = list(check(build / "reference", names, source))
    print("\n".join(faults))
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
