"""Workers next to those of Spark.

Each worker of kofn is the child process of a task of one Spark job. Spark places the
tasks and starts lost ones again. The package kofn must be installed on the executors.
"""
import threading
import time
import uuid

from . import _child, _fleet

__all__ = ["fleet"]

# A job that fails in this number of seconds is not started again.
SOON = 60


class _Task:
    """Keeps one worker of kofn as a child until it has left. Spark calls it with a
    partition."""

    def __init__(self, endpoint, options, threads, grace):
        self.given = endpoint, options, threads, grace

    def __call__(self, partition):
        status = _child.Child(*self.given).keep()
        if status:
            raise RuntimeError(f"the worker of kofn has exited with {status}; its message "
                               "is in the log of the executor")
        return iter(())


class _Job:
    """The Spark job with a task for each worker, on a thread of the driver. It fails if
    one of its tasks fails too often (spark.task.maxFailures), and is started again."""

    def __init__(self, sc, workers, task, grace):
        self.sc, self.workers, self.task, self.grace = sc, workers, task, grace
        self.group, self.ended = f"kofn-{uuid.uuid4().hex}", threading.Event()
        self.thread = threading.Thread(target=self._keep, daemon=True, name="kofn")
        self.thread.start()

    def _keep(self):
        self.sc.setJobGroup(self.group, "workers of kofn", interruptOnCancel=True)
        while not self.ended.is_set():
            began = time.monotonic()
            try:
                self.sc.parallelize(range(self.workers), self.workers) \
                    .mapPartitions(self.task).count()
                return
            except Exception:  # its message is in Spark's log
                if time.monotonic() - began < SOON:
                    return
                self.ended.wait(_child.PAUSE)

    def over(self):
        """True if the job has ended, and with it all workers."""
        return not self.thread.is_alive()

    def end(self):
        """Waits for the job, whose workers were dismissed, and cancels it after a
        while."""
        self.ended.set()
        self.thread.join(self.grace + _child.LAST)
        if self.thread.is_alive():
            self.sc.cancelJobGroup(self.group)
            self.thread.join(_child.LAST)


def _places(sc):
    """Returns the address where the driver listens, and its name for executors."""
    of = sc.getConf().get
    if sc.master.startswith("local"):
        return "127.0.0.1", "127.0.0.1"
    host = of("spark.driver.host")
    bound = of("spark.driver.bindAddress") or host
    return tuple(f"[{h}]" if ":" in h and h[0] != "[" else h for h in (bound, host))


def fleet(sc, workers=None, *, address=None, keys=None, worker_keys=None, insecure=False,
          module=None, grace=0, patience=60):
    """Returns a kofn.Fleet with one worker in each of `workers` tasks of a Spark job.

    sc         a SparkContext, such as spark.sparkContext.
    workers    number of tasks; None: sc.defaultParallelism. The job needs so many free
               slots, and holds them until the fleet is closed.
    address    where the driver listens. None: any free port of Spark's own address for
               the driver (spark.driver.bindAddress, spark.driver.host). All executors
               must reach it.
    keys, worker_keys
               folders with keys, of the driver and of the executors (`kofn keygen`). Each
               machine must have its folder; keys never pass through Spark.
               worker_keys=None: the same path as keys.
    insecure   without encryption where others can listen, as for kofn.Matrix.
    module     path of a Python file on the executors, with part(part, parts, x),
               multiply(a, b) or keep(block): see kofn.serve.
    grace      seconds in which a worker finishes its tasks after SIGTERM.
    patience   seconds for which a worker looks for the driver after losing it.

    A worker is a child process of the Python process of its task, and ends with it. It
    has spark.task.cpus threads. A lost task is started again by Spark, and its worker
    joins the fleet. The job has no barrier, because a barrier would start all tasks
    again after the loss of one. A worker that is killed itself is started again. If the
    job fails within a minute, the first round fails with kofn.TooFewWorkers.

    Close the fleet before sc.stop(). Closing it ends the workers and the job.

    This was not run with Spark itself. It is tested with a stand-in that has the same
    interface.
    """
    if workers is None:
        workers = sc.defaultParallelism
    bound, host = _places(sc)
    given = _child.options(worker_keys or keys, insecure, module, grace, patience)
    threads = int(sc.getConf().get("spark.task.cpus") or 1)
    it = _fleet.Fleet(address or f"tcp://{bound}:*", workers, keys=keys, insecure=insecure)
    it._held["trunk"].place = _Job(
        sc, it.size, _Task(_child.reached(it.endpoint, host), given, threads, grace), grace)
    return it
