"""Builds the package kofn with its own libkofn and commands.

CMake compiles the C sources beside this folder, or those in c/ of a source
distribution, and installs them into the package: kofn/lib and kofn/bin. With
KOFN_PREFIX (an installation of libkofn) the package uses that library instead, and
contains no command. KOFN_RPATH is then the folder to load it from ("": where the
system looks).
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

from setuptools import setup
from setuptools.command.build_ext import build_ext
from distutils.command.install_data import install_data
from setuptools.command.sdist import sdist

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE / "c" if (HERE / "c").exists() else HERE.parent
# Files and folders of the checkout that a source distribution contains.
C_FILES = ["CMakeLists.txt", "LICENSE", "README.md", "cmake", "include", "src", "papers",
           "share"]
PREFIX = os.environ.get("KOFN_PREFIX")
VERSION = re.search(r"project\(kofn VERSION (\S+)",
                    (SOURCE / "CMakeLists.txt").read_text())[1]
COMMANDS = "kofn", "kofn-papers"
# Folders that are installed beside the package.
SHARED = ["share/man/man1", "share/bash-completion/completions", "share/zsh/site-functions"]


def run(*words):
    """Runs a program. Its output is shown only if it fails."""
    try:
        done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True)
    except FileNotFoundError:
        raise SystemExit(f"kofn is compiled with {words[0]}, which is not here; on "
                         "Debian, as root: apt-get install cmake gcc libopenblas-dev "
                         "librandom123-dev libjansson-dev libxxhash-dev libuv1-dev "
                         "libssl-dev zlib1g-dev") from None
    if done.returncode:
        sys.stderr.write(done.stdout)
        raise SystemExit(f"{words[0]} failed with status {done.returncode}")


class BuildWithLibrary(build_ext):
    """Compiles the library and the commands into the package, then the extension."""

    def run(self):
        if not PREFIX:
            self._library()
        super().run()

    def _library(self):
        build = pathlib.Path(self.build_temp).resolve() / "c"
        made = build / "installed"
        run("cmake", "-S", str(SOURCE), "-B", str(build), "-DKOFN_TESTS=OFF",
            "-DKOFN_DOXYGEN=OFF", f"-DCMAKE_INSTALL_PREFIX={made}",
            "-DCMAKE_INSTALL_LIBDIR=lib", "-DCMAKE_INSTALL_BINDIR=bin",
            "-DKOFN_MPICC_OPENMPI=OFF",
            "-DKOFN_MPICC_MPICH=OFF")
        run("cmake", "--build", str(build), "-j", str(os.cpu_count() or 1))
        run("cmake", "--install", str(build), "--strip")
        package = pathlib.Path(self.build_lib).resolve() / "kofn"
        for name in ("lib/libkofn.so.0", "lib/kofn/libkofn-net.so",
                     "lib/kofn/libkofn-mesh.so", "lib/kofn/libkofn-schemes.so",
                     *(f"bin/{c}" for c in COMMANDS)):
            (package / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(made / name, package / name)
        for extension in self.extensions:
            extension.library_dirs.insert(0, str(made / "lib"))


class InstallShared(install_data):
    """Installs manual pages and completions, which are made with the library."""

    def run(self):
        made = pathlib.Path(self.get_finalized_command("build_ext").build_temp,
                            "c/installed")
        self.data_files = [(folder, [str(p) for p in sorted((made / folder).iterdir())])
                           for folder in SHARED if not PREFIX]
        super().run()


class SourceDistribution(sdist):
    """Adds the C sources."""

    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        for name in C_FILES:
            source, goal = SOURCE / name, pathlib.Path(base_dir, "c", name)
            if source.is_dir():
                shutil.copytree(source, goal, dirs_exist_ok=True)
            else:
                goal.parent.mkdir(exist_ok=True)
                shutil.copy2(source, goal)


if not PREFIX:
    os.environ["KOFN_WITHIN"] = str(SOURCE)
setup(
    version=VERSION,
    cffi_modules=["kofn/_build.py:ffi"],
    cmdclass={"build_ext": BuildWithLibrary, "install_data": InstallShared,
              "sdist": SourceDistribution},
    data_files=[] if PREFIX else [(folder, []) for folder in SHARED],
    scripts=[] if PREFIX else [f"command/{c}" for c in COMMANDS],
    options={"bdist_wheel": {"py_limited_api": "cp39"}},
)
