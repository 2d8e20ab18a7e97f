"""kofn.ray and kofn.spark with stand-ins, which have the same interface. Their actors and
tasks are processes, and get what is pickled."""
import os
import pickle
import signal
import subprocess
import sys
import threading
import types

import numpy as np
import pytest

import kofn
import kofn.ray
import kofn.spark
from processes import alive, children, until

A, x = np.random.default_rng(5).normal(size=(60, 7)), np.arange(7.0)
ACTOR = """
import pickle, sys, time
kind, given = pickle.load(sys.stdin.buffer)
it = kind(*given)
time.sleep(600)
"""
TASK = """
import pickle, sys
task, partition = pickle.load(sys.stdin.buffer)
assert list(task(iter(partition))) == []
"""


def process(program, *given):
    it = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE)
    it.stdin.write(pickle.dumps(given))
    it.stdin.close()
    return it


class Actor:
    """A restartable actor."""

    def __init__(self, kind, options, given):
        assert options["max_restarts"] == -1 and options["scheduling_strategy"] == "SPREAD"
        self.kind, self.options, self.given = kind, options, given
        self.stopped = threading.Event()
        self.process = process(ACTOR, kind, given)
        threading.Thread(target=self.keep, daemon=True).start()

    def keep(self):
        while self.process.wait() < 0 and not self.stopped.is_set():
            self.process = process(ACTOR, self.kind, self.given)


class Ray:
    """The module ray."""

    def __init__(self, there=True):
        self.actors, self.there = [], there
        self.util = types.SimpleNamespace(get_node_ip_address=lambda: "127.0.0.1")

    def is_initialized(self):
        return self.there

    def nodes(self):
        return [{"Alive": True}, {"Alive": False}, {"Alive": True}]

    def remote(self, kind):
        def options(**options):
            def remote(*given):
                self.actors.append(Actor(kind, options, given))
                return self.actors[-1]
            return types.SimpleNamespace(remote=remote)
        return types.SimpleNamespace(options=options)

    def kill(self, actor, *, no_restart=True):
        actor.stopped.set()
        actor.process.kill()


class Context:
    """A SparkContext."""

    master, defaultParallelism = "local[2]", 2

    def __init__(self, conf={}):
        self.conf, self.group, self.cancelled = conf, threading.local(), []
        self.tasks = {}

    def getConf(self):
        return self.conf

    def setJobGroup(self, group, description, interruptOnCancel=False):
        self.group.name = group

    def cancelJobGroup(self, group):
        self.cancelled.append(group)
        for task in self.tasks.values():
            task.kill()

    def parallelize(self, numbers, slices):
        parts = [list(numbers)[i::slices] for i in range(slices)]
        return types.SimpleNamespace(mapPartitions=lambda f: types.SimpleNamespace(
            count=lambda: self.count(f, parts)))

    def count(self, f, parts):
        """Runs the tasks, each at most four times."""
        assert self.group.name.startswith("kofn-")
        failures = [0] * len(parts)
        self.tasks = {i: process(TASK, f, part) for i, part in enumerate(parts)}
        while self.tasks:
            i, task = next(iter(self.tasks.items()))
            try:
                if task.wait(0.02) == 0:
                    del self.tasks[i]
                    continue
                failures[i] += 1
                if failures[i] == 4 or self.cancelled:
                    raise RuntimeError("the job has failed")
                task = process(TASK, f, parts[i])
            except subprocess.TimeoutExpired:
                pass
            del self.tasks[i]
            self.tasks[i] = task
        return 0


def lose_one(fleet, parents):
    """Kills a parent of a worker, waits for the end of that worker, and for the next."""
    there = children(fleet.endpoint)
    assert set(there.values()) == set(parents)
    lost = next(iter(there))
    os.kill(there[lost], signal.SIGKILL)
    until(lambda: not alive(lost))
    until(lambda: {w.process for w in fleet.workers} - set(there) and
          len(fleet.workers) == len(there))


def test_a_killed_actor_of_ray_is_replaced(monkeypatch):
    ray = Ray()
    monkeypatch.setitem(sys.modules, "ray", ray)
    with kofn.ray.fleet(num_gpus=1) as fleet:
        assert fleet.size == 2 and fleet.wait(timeout=60) == 2
        with kofn.Matrix(A, fleet, scheme="mds:k=1") as M:
            assert np.allclose(M @ x, A @ x)
            lose_one(fleet, [a.process.pid for a in ray.actors])
            assert np.allclose(M @ x, A @ x)
        assert ray.actors[0].options["num_gpus"] == ray.actors[0].options["num_cpus"] == 1
        endpoint = fleet.endpoint
    until(lambda: not any(map(alive, children(endpoint))))
    until(lambda: not any(alive(a.process.pid) for a in ray.actors))


def test_ray_must_be_connected(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", Ray(there=False))
    with pytest.raises(kofn.Invalid, match=r"call ray.init\(\) first"):
        kofn.ray.fleet()


@pytest.mark.parametrize("address, host", [("10.0.0.3", "10.0.0.3"), ("::1", "[::1]"),
                                           ("[::1]", "[::1]")])
def test_the_address_of_this_machine_in_ray(address, host):
    ray = Ray()
    ray.util.get_node_ip_address = lambda: address
    assert kofn.ray._host(ray) == host


def test_a_killed_task_of_spark_is_replaced():
    sc = Context({"spark.task.cpus": "3"})
    with kofn.spark.fleet(sc) as fleet:
        assert fleet.size == 2 and fleet.wait(timeout=60) == 2
        with kofn.Matrix(A, fleet, scheme="mds:k=1") as M:
            assert np.allclose(M @ x, A @ x)
            lose_one(fleet, [t.pid for t in sc.tasks.values()])
            assert np.allclose(M @ x, A @ x)
        with open(f"/proc/{fleet.workers[0].process}/environ") as environment:
            assert "OMP_NUM_THREADS=3" in environment.read().split("\0")
        endpoint, job = fleet.endpoint, fleet._held["trunk"].place
    assert job.over() and not sc.cancelled and not sc.tasks
    until(lambda: not any(map(alive, children(endpoint))))


def test_a_spark_job_that_fails_at_once_is_no_reason_to_wait(capfd):
    with kofn.spark.fleet(Context(), 1, module="/no/such/module.py") as fleet:
        with pytest.raises(kofn.TooFewWorkers, match="ended before they came"):
            kofn.matmul(A, x, fleet)
    assert "the worker of kofn has exited with 1" in capfd.readouterr().err


def test_a_spark_job_is_started_again_and_cancelled_if_it_stays(monkeypatch):
    begun, stop = [], threading.Event()

    def count(f, parts):
        begun.append(1)
        if len(begun) < 3:
            raise RuntimeError("the job has failed")
        stop.wait()
    sc = Context()
    sc.count, sc.cancelJobGroup = count, lambda group: stop.set()
    monkeypatch.setattr(kofn.spark, "SOON", 0)
    for name in "PAUSE", "LAST":
        monkeypatch.setattr(kofn._child, name, 0.01)
    with kofn.spark.fleet(sc) as fleet:
        until(lambda: len(begun) == 3)
        assert not fleet._held["trunk"].place.over()
    assert stop.is_set()


@pytest.mark.parametrize("master, conf, places", [
    ("local[*]", {"spark.driver.host": "vm"}, ("127.0.0.1", "127.0.0.1")),
    ("yarn", {"spark.driver.host": "10.0.0.3"}, ("10.0.0.3", "10.0.0.3")),
    ("k8s://", {"spark.driver.host": "driver.svc", "spark.driver.bindAddress": "0.0.0.0"},
     ("0.0.0.0", "driver.svc")),
    ("yarn", {"spark.driver.host": "::1"}, ("[::1]", "[::1]"))])
def test_the_addresses_of_a_spark_driver(master, conf, places):
    sc = Context(conf)
    sc.master = master
    assert kofn.spark._places(sc) == places
