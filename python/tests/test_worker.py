"""A worker in Python: signals, its parent, its memory and its files."""
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import kofn
from kofn import _worker


def until(holds):
    for _ in range(12000):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError("in vain")


def catches(pid, number):
    """True if the process handles that signal."""
    with open(f"/proc/{pid}/status") as f:
        mask = next(line for line in f if line.startswith("SigCgt:"))
    return int(mask.split()[1], 16) >> (number - 1) & 1


def worker(at, *options):
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    return subprocess.Popen([sys.executable, "-m", "kofn", "worker", at, *options],
                            env=env)


def test_sigterm_lets_a_worker_leave(tmp_path):
    w = worker(f"ipc://{tmp_path}/s", "--grace", "5")
    until(lambda: catches(w.pid, signal.SIGTERM))
    w.terminate()
    assert w.wait() == 143  # a plain process would end with -15


def test_a_worker_ends_with_its_killed_parent(tmp_path):
    code = ("import subprocess, sys\n"
            "w = subprocess.Popen(sys.argv[1:])\n"
            "print(w.pid, flush=True)\n"
            "w.wait()")
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    with subprocess.Popen(
            [sys.executable, "-c", code, sys.executable, "-m", "kofn", "worker",
             f"ipc://{tmp_path}/s", "--with-parent"], env=env,
            stdout=subprocess.PIPE) as parent:
        child = int(parent.stdout.readline())
        until(lambda: catches(child, signal.SIGUSR2))
        parent.kill()

    def gone():
        try:
            with open(f"/proc/{child}/stat") as f:
                return f.read().rsplit(")", 1)[1].split()[0] == "Z"
        except FileNotFoundError:
            return True
    until(gone)


@pytest.mark.parametrize("words, number", [
    ("7", 7), ("3k", 3000), ("20M", 20 * 10**6), ("2G", 2 * 10**9)])
def test_sizes_are_as_of_the_command(words, number):
    assert _worker.size(words) == number


@pytest.mark.parametrize("words", ["", "k", "-1", "1.5G", "3T", "0", "10000000000G"])
def test_other_sizes_are_refused(words):
    with pytest.raises(ValueError):
        _worker.size(words)


def test_a_block_comes_from_a_file_of_the_worker(tmp_path):
    """The folder's file is read; a folder that is missing is refused."""
    A = np.arange(12.0).reshape(3, 4)
    np.save(tmp_path / "A.npy", A)
    ffi, lib = _worker.ffi, _worker.lib
    dense, sparse = ffi.new("kofn_matrix **"), ffi.new("kofn_sparse **")
    folder = _worker.Folder(tmp_path)
    name = ffi.new("char[]", b"A.npy")
    assert folder.open(name, dense, sparse) == lib.KOFN_OK
    assert (dense[0].rows, dense[0].cols) == A.shape and sparse[0] == ffi.NULL
    folder.close()
    missing = ffi.new("char[]", b"B.npy")
    assert folder.open(missing, dense, sparse) == lib.KOFN_IO
    with pytest.raises(kofn.Invalid, match="data_path"):
        kofn.serve(f"ipc://{tmp_path}/s", data_path=tmp_path / "nowhere")
