"""Workers with a multiply function of the user, compared with NumPy."""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import pytest

import kofn

rng = np.random.default_rng(4)
X = rng.standard_normal((90, 12))


def close(a, b, u=1e-12):
    return np.linalg.norm(a - b) <= u * np.linalg.norm(b)


def einsum(a, b):
    """Another way than BLAS."""
    return np.einsum("ik,kj->ij", a, b)


@pytest.mark.parametrize("dtype, u", [(np.float64, 1e-12), (np.float32, 1e-4)])
@pytest.mark.parametrize("columns", [1, 5])
def test_products(dtype, u, columns, tmp_path):
    def multiply(a, b):
        (tmp_path / f"{os.getpid()}").touch()
        assert a.dtype == b.dtype == dtype
        return einsum(a, b)

    B = rng.standard_normal((12, columns)).astype(dtype)
    B = B[:, 0] if columns == 1 else B
    with kofn.Matrix(X.astype(dtype), "processes", scheme="elastic:k=2",
                     workers=3, columns=columns, multiply=multiply,
                     below="pause") as M:
        for _ in range(3):
            assert close(M @ B, X @ B.astype(np.float64), u)
        used = {int(name) for name in os.listdir(tmp_path)}
        assert used and used <= set(M.processes)


class Kept:
    """The result of keep(): it records how it is used."""

    def __init__(self, block):
        self.block = block.copy()

    @property
    def shape(self):
        return self.block.shape

    def __getitem__(self, where):
        part = Kept.__new__(Kept)
        part.block = self.block[where]
        return part


def test_blocks_are_kept_once(tmp_path):
    def keep(block):
        with open(tmp_path / f"{os.getpid()}", "a") as f:
            f.write("kept\n")
        return Kept(block)

    def multiply(a, b):
        assert isinstance(a, Kept) != isinstance(b, Kept)
        return einsum(getattr(a, "block", a), getattr(b, "block", b))

    with kofn.Matrix(X, "processes", scheme="elastic:k=2", workers=2,
                     multiply=multiply, keep=keep, below="pause") as M:
        for again in range(4):
            w, z = rng.standard_normal(12), rng.standard_normal(90)
            assert close(M @ w, X @ w)
            assert close(z @ M, z @ X)
            if not again:  # this code has four blocks a worker
                kept = {p: p.read_text() for p in tmp_path.iterdir()}
    assert kept == {p: p.read_text() for p in tmp_path.iterdir()}
    assert len(kept) == 2


def test_who_multiplies_wrongly_is_named(tmp_path):
    def multiply(a, b):
        c = einsum(a, b)
        try:
            (tmp_path / "liar").touch(exist_ok=False)
            me.append(True)
        except FileExistsError:
            pass
        if me:
            c[0] += 1
        return c

    me = []
    with kofn.Matrix(X, "processes", scheme="mds:k=2", workers=5,
                     errors="adversarial", multiply=multiply,
                     below="pause") as M:
        named = set()
        end = time.monotonic() + 100
        while not named and time.monotonic() < end:  # others may be first
            w = rng.standard_normal(12)
            assert close(M @ w, X @ w)
            named |= set(M.report.liars)
        for _ in range(4):
            w = rng.standard_normal(12)
            assert close(M @ w, X @ w)
            named |= set(M.report.liars)
        assert len(named) == 1


def tells(words, capfd):
    """A process, when it comes to it: products do not wait for it."""
    err, end = "", time.monotonic() + 100
    while words not in err and time.monotonic() < end:
        time.sleep(0.01)
        err += capfd.readouterr().err
    return words in err


def test_what_it_raises_fails_the_task(tmp_path, capfd):
    def multiply(a, b):
        try:
            (tmp_path / "first").touch(exist_ok=False)
        except FileExistsError:
            return einsum(a, b)
        raise RuntimeError("no memory on the GPU")

    with kofn.Matrix(X, "processes", scheme="mds:k=2", workers=4,
                     multiply=multiply, below="pause") as M:
        assert close(M @ np.ones(12), X @ np.ones(12))
        assert tells("no memory on the GPU", capfd)


@pytest.mark.parametrize("wrong, words", [
    (lambda a, b: einsum(a, b)[:-1], "of float64"),
    (lambda a, b: einsum(a, b).astype(np.float32), "numbers of float32"),
    (lambda a, b: np.ma.masked_less(einsum(a, b), np.inf), "masked"),
    (lambda a, b: None, "numbers of object")])
def test_wrong_answers_are_told(wrong, words, tmp_path, capfd):
    def multiply(a, b):
        try:
            (tmp_path / "first").touch(exist_ok=False)
        except FileExistsError:
            return einsum(a, b)
        return wrong(a, b)

    with kofn.Matrix(X, "processes", scheme="mds:k=2", workers=4,
                     multiply=multiply, below="pause") as M:
        assert close(M @ np.ones(12), X @ np.ones(12))
        assert tells(words, capfd)


@pytest.mark.parametrize("keep", [None, np.copy])
def test_what_is_lent_and_what_is_kept_cannot_be_written_to(keep):
    def multiply(a, b):
        a *= 2.0
        return einsum(a, b) / 2

    with kofn.Matrix(X, "processes", scheme="mds:k=2", workers=3, multiply=multiply,
                     keep=keep) as M:
        with pytest.raises(ValueError, match="read-only"):
            M @ np.ones(12)


def test_arguments():
    with pytest.raises(kofn.Invalid, match='where="processes"'):
        kofn.Matrix(X, multiply=einsum)
    with pytest.raises(kofn.Invalid, match="no multiply="):
        kofn.serve("ipc:///nowhere", keep=np.copy)
    with pytest.raises(kofn.Invalid, match="3 is no function"):
        kofn.serve("ipc:///nowhere", multiply=3)


def worker(address, module):
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    return subprocess.Popen(
        [sys.executable, "-m", "kofn", "worker", "--once", address, "--module",
         str(module), "--patience", "100"], env=env)


def test_a_worker_with_a_module():
    with tempfile.TemporaryDirectory() as folder:
        module = pathlib.Path(folder, "job.py")
        module.write_text("import numpy as np, pathlib\n"
                          "def multiply(a, b):\n"
                          f"    pathlib.Path({folder!r}, 'used').touch()\n"
                          "    return np.einsum('ik,kj->ij', a, b)\n")
        address = f"ipc://{folder}/socket"
        workers = [worker(address, module) for _ in range(3)]
        try:
            with kofn.Matrix(X, address, scheme="mds:k=2", workers=3,
                             below="pause") as M:
                assert close(M @ np.ones(12), X @ np.ones(12))
            assert [w.wait(300) for w in workers] == [0, 0, 0]
            assert pathlib.Path(folder, "used").exists()
        finally:
            for w in workers:
                w.kill()
                w.wait()


def test_a_module_without_either():
    with tempfile.TemporaryDirectory() as folder:
        module = pathlib.Path(folder, "job.py")
        module.write_text("x = 1\n")
        w = worker(f"ipc://{folder}/socket", module)
        assert w.wait(300) == 1
