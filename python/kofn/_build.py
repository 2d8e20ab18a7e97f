"""Builds kofn._kofn, the library's C interface for Python.

The declarations are not repeated here. The C preprocessor reads the public headers,
and their declarations are given to cffi. In API mode the C compiler then checks every
struct and signature against the same headers.

KOFN_BUILD (a build folder of the checkout that contains this file) or KOFN_PREFIX (an
installation) names the library. KOFN_RPATH replaces the folder that it is loaded from.
With KOFN_WITHIN (set by setup.py) it is the one that is built into the package. Without
all of these it is that checkout's build folder, or the library that pkg-config finds.

    python3 kofn/_build.py [FOLDER]   into FOLDER/kofn, else in place
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys

from cffi import FFI

HERE = pathlib.Path(__file__).resolve().parent
CHECKOUT = HERE.parent.parent
HEADERS = ["kofn.h", "kofn/learn.h", "kofn/scheme.h",
           "kofn/transport.h", "kofn/fleet.h", "kofn/forecast.h", "kofn/mpi.h", "kofn/peer.h", "kofn/net.h",
           "kofn/io.h",
           "kofn/check.h", "kofn/train.h"]

# Macros, which the preprocessor removes.
NUMBERS = """
#define KOFN_OPEN_MOST ...
static char *const KOFN_VERSION;
"""

# Callbacks from the library into Python.
CALLBACKS = """
extern "Python" kofn_status kofn_py_part(void *, size_t, size_t,
                                         const kofn_matrix *, kofn_matrix *);
extern "Python" kofn_status kofn_py_multiply(void *, const kofn_factors *,
                                             kofn_matrix *);
extern "Python" int kofn_py_iterate(void *, unsigned, double,
                                    const kofn_report *);
extern "Python" int kofn_py_regress(void *, const kofn_regress_step *,
                                    const kofn_report *);
extern "Python" int kofn_py_train(void *, const kofn_train_step *,
                                  const kofn_report *);
extern "Python" int kofn_py_node(void *, const kofn_node_view *,
                                 const double *);
extern "Python" kofn_leave kofn_py_serve(void *, const char *);
extern "Python" kofn_status kofn_py_operand(void *, const char *,
                                            const kofn_matrix **,
                                            const kofn_sparse **);
extern "Python" kofn_status kofn_py_rows(void *, size_t, const kofn_matrix *);
extern "Python" void kofn_py_operand_done(void *);
extern "Python" void kofn_py_news(void *, const char *);
extern "Python" size_t kofn_py_ended(void *);
extern "Python" int kofn_py_start(void *);
extern "Python" int kofn_py_kill(void *, uint64_t);
"""


def where():
    """Returns (include folders, library folders) of the library."""
    source = os.environ.get("KOFN_WITHIN")
    if source:
        return [f"{source}/include"], []
    prefix = os.environ.get("KOFN_PREFIX")
    if prefix:
        libs = [p.parent for p in sorted(pathlib.Path(prefix).glob("lib*/**/libkofn.so"))]
        if not libs:
            raise SystemExit(f"KOFN_PREFIX={prefix} has no libkofn.so; build "
                             "it with: make install PREFIX=...")
        return [f"{prefix}/include"], [str(libs[0])]
    for folder in (os.environ.get("KOFN_BUILD"), CHECKOUT / "build/plain",
                   CHECKOUT / "build/test/plain"):
        if folder and pathlib.Path(folder, "libkofn.so").exists():
            return [str(CHECKOUT / "include")], [str(folder)]
    flags = subprocess.run(["pkg-config", "--cflags", "--libs",
                            "kofn"], capture_output=True, text=True)
    if flags.returncode:
        raise SystemExit("libkofn is not found; `make` in the checkout builds "
                         "it, or set KOFN_PREFIX to where it is installed")
    words = shlex.split(flags.stdout)
    return ([w[2:] for w in words if w.startswith("-I")],
            [w[2:] for w in words if w.startswith("-L")])


def declarations(include):
    """Returns the declarations of the public headers, after preprocessing."""
    source = "".join(f"#include <{h}>\n" for h in HEADERS)
    out = subprocess.run(
        [os.environ.get("CC", "cc"), "-E", "-D__attribute__(x)=", "-x", "c",
         *[f"-I{i}" for i in include], "-"],
        input=source, capture_output=True, text=True, check=True).stdout
    kept, ours = [], False
    for line in out.splitlines():
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            ours = bool(re.search(r"(^|/)kofn(/\w+)?\.h$", marker.group(1)))
        elif ours:
            kept.append(line)
    text = re.sub(r"\b_Bool\b", "bool", "\n".join(kept))
    text = re.sub(r"\(9223372036854775807L?L?\)", "9223372036854775807", text)
    return text


def loaded_from(libraries):
    """Returns the folders in which the library is looked for when it is loaded."""
    if os.environ.get("KOFN_WITHIN"):
        return ["$ORIGIN/lib"]
    folder = os.environ.get("KOFN_RPATH")
    if folder is not None:
        return [folder] if folder else []
    return [os.path.abspath(p) for p in libraries]


ffi = FFI()
_include, _libraries = where()
ffi.cdef(declarations(_include) + NUMBERS + CALLBACKS)
ffi.set_source(
    "kofn._kofn", "".join(f"#include <{h}>\n" for h in HEADERS),
    include_dirs=_include, library_dirs=_libraries,
    runtime_library_dirs=loaded_from(_libraries),
    libraries=["kofn"])

if __name__ == "__main__":
    ffi.compile(tmpdir=sys.argv[1] if sys.argv[1:] else str(HERE.parent))
