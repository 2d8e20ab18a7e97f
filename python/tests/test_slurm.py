"""kofn.slurm with a stand-in for srun. With KOFN_SLURM set, in a job of three nodes, with
the real one (tests/slurm)."""
import os
import shutil
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest

import kofn
import kofn.slurm
from processes import alive, until

REAL = "KOFN_SLURM" in os.environ
A, x = np.random.default_rng(5).normal(size=(60, 7)), np.arange(7.0)
# Starts the tasks, and kills them after SIGTERM, as srun does. All options have a "=" or
# no value.
SRUN = """#!/bin/sh
for word; do
    case $word in
        --ntasks=*) n=${word#*=} ;;
        --no-such-option) echo "srun: unrecognized option" >&2; exit 1 ;;
    esac
done
while [ "${1#--}" != "$1" ]; do shift; done
trap 'kill -9 $tasks' TERM
for i in $(seq "$n"); do "$@" & tasks="$tasks $!"; done
wait
wait
"""
PROGRAM = """
import kofn.slurm, time
fleet = kofn.slurm.fleet(3, insecure=True)
fleet.wait(timeout=60)
print(fleet._held["trunk"].place.room, *(w.process for w in fleet.workers), flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def job(monkeypatch, tmp_path):
    """The environment of a job with one node."""
    if REAL:
        return
    for name in [name for name in os.environ if name.startswith("SLURM")]:
        monkeypatch.delenv(name)
    (tmp_path / "srun").write_text(SRUN)
    (tmp_path / "srun").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for name, words in (("JOB_ID", "7"), ("NTASKS", "3"), ("JOB_NUM_NODES", "1")):
        monkeypatch.setenv(f"SLURM_{name}", words)
    monkeypatch.setenv("SLURMD_NODENAME", "n1")


def cancel(fleet):
    """Cancels the job step."""
    if not REAL:
        fleet._held["trunk"].place.process.terminate()
        return
    steps = subprocess.run(["squeue", "-s", "-h", "-o", "%i %j"], check=True, text=True,
                           capture_output=True).stdout.splitlines()
    step, = (line.split()[0] for line in steps if line.endswith(" kofn"))
    subprocess.run(["scancel", step], check=True)


def test_a_task_is_lost_and_then_the_step():
    with kofn.slurm.fleet(insecure=True) as fleet:
        room = fleet._held["trunk"].place.room
        assert fleet.size == 3 and fleet.endpoint.startswith("tcp:" if REAL else "ipc:")
        detect = dict(scheme="mds:k=1", errors="detect")
        y = kofn.matmul(A, x, fleet, workers_per_principal=0, **detect)
        assert np.allclose(y, A @ x)
        with pytest.raises(kofn.TooFewWorkers, match="find errors"):  # of one user or host
            kofn.matmul(A, x, fleet, **detect)
        with kofn.Matrix(A, fleet, scheme="mds:k=2") as M:
            assert np.allclose(M @ x, A @ x)
            assert fleet.wait(timeout=60) == 3
            processes = [w.process for w in fleet.workers]
            if "OPENBLAS_NUM_THREADS" not in os.environ:
                with open(f"/proc/{processes[0]}/environ") as environment:
                    assert "OPENBLAS_NUM_THREADS=1" in environment.read().split("\0")
            os.kill(processes[0], signal.SIGKILL)
            until(lambda: len(fleet.workers) == 2)
            assert np.allclose(M @ x, A @ x)
            cancel(fleet)
            until(lambda: not any(map(alive, processes)))
            with pytest.raises(kofn.TooFewWorkers, match="left"):
                while True:
                    M @ x
        assert fleet.wait() == 0
        with pytest.raises(kofn.TooFewWorkers, match="ended before they came"):
            kofn.matmul(A, x, fleet)
    assert room is None or not os.path.exists(room)


def test_closing_ends_the_step_and_a_killed_program_leaves_no_orphans():
    with kofn.slurm.fleet(3, insecure=True) as fleet:
        step = fleet._held["trunk"].place
        assert fleet.wait(timeout=60) == 3
        assert os.getsid(step.process.pid) != os.getsid(0)  # Ctrl-C does not reach it
    assert step.over() and step.process.returncode == 0
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE,
                          text=True) as program:
        room, *processes = program.stdout.readline().split()
        assert len(processes) == 3 and all(map(alive, processes))
        program.kill()
    until(lambda: not any(map(alive, processes)), 20)
    shutil.rmtree(room, ignore_errors=True)


def test_a_step_that_cannot_start_is_no_reason_to_wait(monkeypatch):
    monkeypatch.setenv("SLURM_JOB_NUM_NODES", "3")
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "1")
    with kofn.slurm.fleet(2, insecure=True, time=5, grace=1,
                          srun_options=["--no-such-option"]) as fleet:
        words = fleet._held["trunk"].place.words
        assert {"--ntasks=2", "--cpus-per-task=1", "--time=5"} <= set(words)
        port = fleet.endpoint.rpartition(":")[2]
        assert f"tcp://{kofn.slurm._host()}:{port}" in words
        assert fleet.endpoint == f"tcp://0.0.0.0:{port}"
        with pytest.raises(kofn.TooFewWorkers, match="ended before they came"):
            kofn.matmul(A, x, fleet)


def test_what_is_refused(monkeypatch):
    with pytest.raises(kofn.Invalid, match="give a list"):
        kofn.slurm.fleet(srun_options="-O")
    with pytest.raises(kofn.Invalid, match="workers"):
        kofn.slurm.fleet(0)
    with pytest.raises(kofn.Error):
        kofn.slurm.fleet(keys="/no/such/folder", address="tcp://127.0.0.1:*")
    monkeypatch.setenv("PATH", "/no/such/folder")
    with pytest.raises(kofn.Invalid, match="no srun in PATH"):
        kofn.slurm.fleet()
    monkeypatch.delenv("SLURM_JOB_ID")
    with pytest.raises(kofn.Invalid, match="no job of Slurm; run the program by sbatch"):
        kofn.slurm.fleet()


@pytest.mark.parametrize("name, full, host", [
    ("a", "a.b.c", "a.b.c"), ("a", "localhost", "a"), ("a", "localhost.local", "a")])
def test_the_name_of_this_machine_is_none_of_the_loopback(name, full, host, monkeypatch):
    monkeypatch.setattr(socket, "getfqdn", lambda: full)
    monkeypatch.setattr(socket, "gethostname", lambda: name)
    assert kofn.slurm._host() == host
