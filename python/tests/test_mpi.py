"""kofn.mpi between real ranks of mpi4py, and what it refuses without."""
import importlib.util
import os
import re
import shutil
import subprocess
import sys

import pytest

import kofn
import kofn.mpi

# Halves of the ranks multiply by themselves, one given by mpi4py and one by its handle.
PROGRAM = """
import numpy as np
from mpi4py import MPI
import kofn.mpi
from kofn import _lib
from kofn._job import problem
from kofn._lib import check, ffi, lib, new

world = MPI.COMM_WORLD
which = world.rank % 2
half = world.Split(which, world.rank)
comm = half.py2f() if which else half
root = half.size - 1 if which else 0
fleet = kofn.mpi.fleet(comm, root=root)
if fleet:
    rng = np.random.default_rng(9 + which)
    A, x = rng.random((41, 9)), rng.random(9)
    with fleet, kofn.Matrix(A, fleet, scheme="mds:k=1") as M, \
            kofn.Matrix(2 * A, fleet, scheme="mds:k=1") as N:
        assert np.allclose(M @ x, A @ x) and np.allclose(N @ x, 2 * A @ x)
        assert len(fleet.workers) == half.size - 1
if half.rank != root:
    kofn.mpi.serve(comm, root=root)
else:
    rng = np.random.default_rng(which)
    A, x, y = rng.random((101, 7)), rng.random((7, 1)), np.zeros((101, 1))
    transport = kofn.mpi.attach(comm, root=root)
    away = _lib.begun("kofn_away_options", workers=half.size - 1)
    port = new(lib.kofn_port_away, transport, away)
    plan = new(lib.kofn_plan_new, problem(lib.KOFN_MATVEC, 101, 7, 1, A.dtype),
               b"mds:k=1", half.size - 1, 1)
    job = new(lib.kofn_open, plan, port, ffi.NULL)
    check(lib.kofn_place(job, _lib.view(A)))
    check(lib.kofn_round(job, _lib.view(x), _lib.view(y), ffi.NULL))
    lib.kofn_close(job)
    lib.kofn_plan_free(plan)
    assert np.allclose(y, A @ x, rtol=1e-12), (y, A @ x)
# rows of different numbers, none on rank 1; complex numbers too
rng = np.random.default_rng(5)
for whole in rng.random((97, 6)), rng.random((50, 4)) + 1j * rng.random((50, 4)):
    cuts = np.sort(rng.integers(0, len(whole), world.size - 1))
    own = np.split(whole, np.insert(cuts, 1, cuts[0])[:world.size - 1])[world.rank]
    with kofn.mpi.Spread(world, own, panel=500) as S:
        if fleet := kofn.mpi.fleet(world):
            assert S.shape == whole.shape
            x = rng.random(whole.shape[1])
            with fleet, kofn.Matrix(S.rows, fleet, scheme="mds:k=2") as M:
                assert np.allclose(M @ x, whole @ x, rtol=1e-12)
                assert np.allclose(M.fetch(), whole, rtol=1e-12)
assert world.allreduce(world.rank) == world.size * (world.size - 1) // 2
print(f"rank {world.rank}: ok", flush=True)
"""


@pytest.mark.parametrize("comm, words", [("world", "'world'"), (2.5, "2.5"), (0, "no MPI")])
def test_what_is_no_communicator_is_refused(comm, words):
    with pytest.raises(kofn.Error, match=words):
        kofn.mpi.attach(comm)


@pytest.mark.skipif(not (importlib.util.find_spec("mpi4py") and shutil.which("mpirun")),
                    reason="neither mpi4py nor mpirun is here")
def test_halves_of_the_ranks_multiply_and_mpi_goes_on():
    command = ["mpirun", "-n", "6", sys.executable, "-c", PROGRAM]
    free = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path), OPENBLAS_NUM_THREADS="1",
                OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                OMPI_MCA_rmaps_base_oversubscribe="1")
    done = subprocess.run(command, env=free, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert sorted(re.findall(r"rank (\d): ok", done.stdout)) == list("012345")
