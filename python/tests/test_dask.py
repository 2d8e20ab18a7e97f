"""kofn.dask against NumPy, with Dask workers that are killed, added and removed."""
import contextlib
import io
import os
import pathlib
import random
import re
import signal
import time
import types

import numpy as np
import pytest

import kofn

pytest.importorskip("distributed")
dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
from distributed import Client, LocalCluster  # noqa: E402

import kofn.dask  # noqa: E402
from kofn._lib import check, lib  # noqa: E402
from processes import alive, children, until  # noqa: E402

rng = np.random.default_rng(5)
A, B = rng.normal(size=(101, 7)), rng.normal(size=(7, 4))


def parents(client):
    """Returns the processes of the Dask workers that their nannies have started."""
    return {nanny.pid for nanny in client.cluster.workers.values()
            if nanny.process and nanny.process.status.name == "running"}


def joined(client, fleet, n):
    """True if n Dask workers have one connected child each, and there is no other."""
    there = {p: parent for p, parent in children(fleet.endpoint).items() if alive(p)}
    return len(client.nthreads()) == n == len(there) \
        and set(there) == {w.process for w in fleet.workers} \
        and set(there.values()) == parents(client)


@pytest.fixture(scope="module")
def client():
    """A LocalCluster removes a worker that is not there 15 s after a former loss."""
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "1h"}), \
            LocalCluster(n_workers=3, threads_per_worker=2, dashboard_address=None,
                         silence_logs=50, memory_limit="300MB") as cluster, \
            Client(cluster) as c:
        yield c


def right(fleet, scheme):
    with kofn.Matrix(A, fleet, scheme=scheme) as M:
        return np.allclose(M @ B, A @ B)


def kill(client, fleet, seconds=0.0):
    """Kills a Dask worker, and returns the time until its child was gone and the time
    from the restart of the Dask worker until its new child had connected."""
    victim = random.choice(sorted(parents(client)))
    own = [p for p, parent in children(fleet.endpoint).items() if parent == victim]
    time.sleep(seconds)
    os.kill(victim, signal.SIGKILL)
    begin = time.monotonic()
    until(lambda: not any(map(alive, own)))
    gone = time.monotonic()
    until(lambda: len(client.nthreads()) == 3 == len(parents(client) - {victim}))
    restarted = time.monotonic()
    until(lambda: joined(client, fleet, 3))
    return gone - begin, time.monotonic() - restarted


def test_a_persisted_array_survives_the_loss_of_its_workers(client):
    X = da.from_array(A, (30, 4))
    with kofn.dask.fleet(client) as fleet, \
            kofn.dask.persist(X, fleet, coded="elastic:k=1", panel=800) as M:
        assert M.chunks == X.chunks and M.shape == A.shape
        until(lambda: not any(client.has_what().values()))  # no chunk is left in Dask
        kill(client, fleet)
        y = M @ da.from_array(B, (7, 2))
        assert y.chunks == (M.chunks[0], (2, 2))
        np.testing.assert_allclose(y.compute(), A @ B, rtol=1e-12)
        z = da.from_array(A.T, (3, 101)) @ M
        assert z.chunks == ((3, 3, 1), M.chunks[1])
        np.testing.assert_allclose(z.compute(), A.T @ A, rtol=1e-12)
        np.testing.assert_allclose(M.compute(), A, rtol=1e-12)
        assert M.to_dask().chunks == M.chunks


def test_killed_dask_workers_leave_no_orphans_and_their_successors_join(client):
    with kofn.dask.fleet(client) as fleet:
        assert fleet.size == 3 and fleet.wait(timeout=60) == 3
        with kofn.Matrix(A, fleet, scheme="mds:k=1") as M:
            assert np.allclose(M @ B, A @ B)
            for _ in range(2):
                kill(client, fleet)
                assert np.allclose(M @ B, A @ B)
        C = kofn.dask.matmul(da.from_array(A, (20, 3)), B, fleet, scheme="mds:k=2")
        assert np.allclose(C.compute(), A @ B)
        endpoint = fleet.endpoint
    until(lambda: not any(map(alive, children(endpoint))))


@pytest.mark.night
def test_a_hundred_kills(client):
    with kofn.dask.fleet(client) as fleet:
        until(lambda: joined(client, fleet, 3))
        times = []
        for i in range(100):
            times.append(kill(client, fleet, random.random() / 4))
            assert i % 10 or right(fleet, "mds:k=2")
        endpoint = fleet.endpoint
        assert len(children(endpoint)) == 3
    until(lambda: not any(map(alive, children(endpoint))))
    print("longest until the child had ended, and from restart to connection:",
          np.max(times, axis=0))


def test_a_cluster_that_is_scaled_and_what_children_have(client, tmp_path):
    keys = os.fsencode(tmp_path / "keys")
    check(lib.kofn_net_keygen(keys, b"anna"))
    with kofn.dask.fleet(client, 1, keys=tmp_path / "keys",
                         worker_keys=tmp_path / "keys/anna") as fleet:
        for n in 2, 4, 1, 3:
            client.cluster.scale(n)
            until(lambda: joined(client, fleet, n))
            assert right(fleet, "mds:k=1")
        assert {w.memory for w in fleet.workers} == {300_000_000}
        assert {w.name for w in fleet.workers} == \
            {str(w["name"]) for w in client.scheduler_info()["workers"].values()}
        child = next(iter(children(fleet.endpoint)))
        with open(f"/proc/{child}/environ") as environment:
            assert "OPENBLAS_NUM_THREADS=2" in environment.read().split("\0")
        os.kill(child, signal.SIGKILL)
        until(lambda: not alive(child))
        until(lambda: joined(client, fleet, 3))
        endpoint = fleet.endpoint
    until(lambda: not any(map(alive, children(endpoint))))
    assert not any(client.run(
        lambda dask_worker: [n for n in dask_worker.plugins if "kofn" in n]).values())
    assert not client.run_on_scheduler(
        lambda dask_scheduler: [n for n in dask_scheduler.worker_plugins if "kofn" in n])


def test_teardown_ends_a_child_although_the_process_stays(monkeypatch):
    monkeypatch.setattr(kofn._child, "LAST", 3600)
    worker = types.SimpleNamespace(
        name="-x", state=types.SimpleNamespace(nthreads=1),
        memory_manager=types.SimpleNamespace(memory_limit=None))
    with kofn.Fleet("tcp://127.0.0.1:*", 1) as fleet:
        plugin = kofn.dask._Plugin(fleet.endpoint, [], 0)
        plugin.setup(worker)
        assert fleet.wait(timeout=60) == 1
        assert fleet.workers[0].name == "-x" and fleet.workers[0].memory is None
        plugin.teardown(worker)
        until(lambda: not fleet.workers and plugin.child.process.poll() is not None)


@pytest.mark.parametrize("name", ["register_plugin", "register_worker_plugin"])
def test_plugins_are_registered_by_old_and_new_methods(name):
    came = []
    client = types.SimpleNamespace(**{name: lambda plugin, name: came.append(name)})
    kofn.dask._join(client, object(), "p")
    assert came == ["p"]


@pytest.mark.parametrize("b, panel", [(B, 1), (B, 33 * 56), (B[:, 0], 1 << 20),
                                      (1j * B, 40 * 56)])
def test_products_of_dask_arrays(b, panel, client):
    with kofn.Fleet("threads", 3) as fleet:
        a = da.from_array(A[:8] if panel == 1 else A, (20, 3))
        chunks = (3, 2)[:b.ndim]
        C = kofn.dask.matmul(a, da.from_array(b, chunks), fleet, scheme="elastic:k=2",
                             panel=panel)
        assert np.allclose(C.compute(), a.compute() @ b)
        assert C.chunks == (a @ da.from_array(b, chunks)).chunks
        assert np.allclose(kofn.dask.matmul(A, b, fleet), A @ b)


@pytest.mark.parametrize("heights, most, panels", [
    ((20, 20, 20, 5), 45, [(0, 40), (40, 65)]), ((7,), 3, [(0, 3), (3, 6), (6, 7)]),
    ((1, 9, 1), 4, [(0, 1), (1, 5), (5, 9), (9, 11)]), ((4, 4), 4, [(0, 4), (4, 8)])])
def test_panels_have_whole_chunks_if_these_fit(heights, most, panels):
    assert list(kofn.dask._panels(heights, most)) == panels


@pytest.mark.night
def test_the_program_of_the_page_prints_what_it_says():
    page = pathlib.Path(__file__).parents[2] / "docs/dask.md"
    code, = re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.M | re.S)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(code, "dask.md", "exec"), {"__name__": "__main__"})
    assert said.getvalue().splitlines() == re.findall(r"print\(.*\)  # (.*)$", code, re.M)


def test_what_is_refused(client):
    with kofn.Fleet("threads", 3) as fleet:
        with pytest.raises(kofn.Invalid, match="must be equal"):
            kofn.dask.matmul(A, A, fleet)
        with pytest.raises(kofn.Invalid, match="must be known"):
            x = da.from_array(A, 20)
            kofn.dask.matmul(x[x[:, 0] > 0], B, fleet)
        with pytest.raises(kofn.Invalid, match="2 dimensions"):
            kofn.dask.matmul(A[0], B, fleet)
    with pytest.raises(kofn.Error):
        kofn.dask.fleet(client, keys="/no/such/folder")
    assert kofn._child.reached("tcp://0.0.0.0:55", "10.0.0.3") == "tcp://10.0.0.3:55"
    assert kofn._child.reached("tcp://[::]:55", "[::1]") == "tcp://[::1]:55"
    assert kofn._child.reached("tcp://10.0.0.4:55", "::1") == "tcp://10.0.0.4:55"
