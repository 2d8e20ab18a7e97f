"""Workers that are tasks of a job step in a Slurm allocation.

The program runs in the job, for example as its batch script. The package kofn must be
installed on the nodes, or be in a folder that they share.
"""
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

from . import _child, _fleet, _lib
from ._lib import Invalid

__all__ = ["fleet"]

# Code that becomes srun. The kernel sends it SIGTERM when the process that started it ends,
# and srun then kills the tasks. The process may have ended even before that was asked for.
START = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 15)
if os.getppid() != int(sys.argv[1]):
    os._exit(1)
os.execvp(sys.argv[2], sys.argv[2:])
"""
# Seconds for the step to end by itself, beyond the grace of the workers, and for srun to
# end after SIGTERM. Slurm gives its tasks a while too (KillWait).
LAST, TERM = 5, 60


class _Step:
    """A job step. `room` is a folder that is removed after it, or None.

    srun is started on a thread that waits for its end, because the kernel ends it with
    the thread that has started it. It is not in the group of processes that gets Ctrl-C
    from the terminal."""

    def __init__(self, words, environment, grace, room):
        self.words, self.environment = words, environment
        self.grace, self.room = grace, room
        self.process, self.started = None, threading.Event()

    def begin(self):
        threading.Thread(target=self._run, daemon=True, name="kofn").start()
        self.started.wait()
        if self.process is None:
            raise Invalid(f"{sys.executable} cannot be started")

    def _run(self):
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-c", START, str(os.getpid()), *self.words],
                env=self.environment, stdin=subprocess.DEVNULL, stdout=2,
                start_new_session=True)
        finally:
            self.started.set()
        self.process.wait()

    def over(self):
        """True if srun has ended, and with it all tasks."""
        return self.process.poll() is not None

    def end(self):
        """Waits until the step is over, and ends it after a while."""
        try:
            if self.process is None:
                return
            for seconds, then in ((self.grace + LAST, self.process.terminate),
                                  (TERM, self.process.kill)):
                try:
                    self.process.wait(seconds)
                    return
                except subprocess.TimeoutExpired:
                    then()
            self.process.wait()
        finally:
            _remove(self.room)


def _number(name):
    """Returns a positive number in the environment, or None."""
    words = os.environ.get(name, "")
    return int(words) if words.isdigit() and int(words) else None


def _host():
    """Returns the name by which the nodes reach this machine."""
    name = socket.getfqdn()
    return socket.gethostname() if name.startswith("localhost") else name


def _srun(workers, time, given):
    """Returns the words of srun before those of a worker.

    The loss of a task or of a node ends neither the others nor the job, whatever
    slurm.conf or the environment says."""
    cpus = _number("SLURM_CPUS_PER_TASK")
    return ["srun", "--overlap", f"--ntasks={workers}", "--kill-on-bad-exit=0",
            "--no-kill", "--wait=0", "--input=none", "--mpi=none", "--export=ALL",
            "--job-name=kofn", *([f"--cpus-per-task={cpus}"] if cpus else []),
            *([f"--time={time}"] if time is not None else []), *given]


def fleet(workers=None, *, address=None, keys=None, worker_keys=None, insecure=False,
          module=None, grace=10, patience=60, time=None, srun_options=()):
    """Returns a kofn.Fleet of workers that a job step of this Slurm allocation runs.

    workers    number of tasks of the step; None: that of the job (SLURM_NTASKS), or else
               one for each node.
    address    where this process listens. None: a Unix socket if the job has one node and
               this process is there, else any free port of all addresses. The workers
               are then given the name of this machine.
    keys, worker_keys
               folders with keys (`kofn keygen`), of this process and of the workers, that
               all nodes see. worker_keys=None: the same path as keys.
    insecure   without encryption where others can listen, as for kofn.Matrix.
    module     path of a Python file with part(part, parts, x), multiply(a, b) or
               keep(block): see kofn.serve.
    grace      seconds in which a worker finishes its tasks after SIGTERM.
    patience   seconds for which a worker looks for this process after losing it.
    time       time limit of the step, as of srun; None: that of the job.
    srun_options
               more options of srun, such as ["--nodes=2", "--overcommit"].

    The step overlaps the other steps of the job. Its messages go to stderr, and so to the
    log of the job. A worker has as many threads as its task has processors, unless
    the environment says how many.

    A task that is killed, or a node that fails, is a loss like any other, and is not
    replaced. If the step has ended, for example by scancel, rounds fail with
    kofn.TooFewWorkers. The step ends with this process, even if that is killed. Closing
    the fleet ends the workers and waits for the end of the step.
    """
    if "SLURM_JOB_ID" not in os.environ:
        raise Invalid("SLURM_JOB_ID is not set, so this is no job of Slurm; run the "
                      "program by sbatch or salloc")
    if shutil.which("srun") is None:
        raise Invalid("there is no srun in PATH; install the client commands of Slurm "
                      "on this machine")
    if isinstance(srun_options, str):
        raise Invalid(f"srun_options={srun_options!r} is a text; give a list of options")
    if workers is None:
        workers = _number("SLURM_NTASKS") or _number("SLURM_JOB_NUM_NODES") or 1
    workers = _lib.count("workers", workers, 32, 1)
    room = None
    if address is None:
        one = _number("SLURM_JOB_NUM_NODES") == 1 and "SLURMD_NODENAME" in os.environ
        room = tempfile.mkdtemp(prefix="kofn.") if one else None
        address = f"ipc://{room}/socket" if room else "tcp://0.0.0.0:*"
    options = _child.options(worker_keys or keys, insecure, module, grace, patience)
    words = _srun(workers, time, srun_options)
    try:
        it = _fleet.Fleet(address, workers, keys=keys, insecure=insecure)
    except BaseException:
        _remove(room)
        raise
    it.where = "slurm"  # where no more workers come by themselves
    words += _child.command(0, _child.reached(it.endpoint, _host()), options)
    step = it._held["trunk"].place = _Step(words, _environment(), grace, room)
    try:
        step.begin()
    except BaseException:
        it.close()
        raise
    return it


def _remove(room):
    if room:
        shutil.rmtree(room, ignore_errors=True)


def _environment():
    """Returns the environment of the workers."""
    threads = dict.fromkeys(_child.THREADS, str(_number("SLURM_CPUS_PER_TASK") or 1))
    return {**threads, **os.environ}
