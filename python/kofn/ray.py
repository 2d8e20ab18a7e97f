"""Workers next to those of Ray.

Each worker of kofn is the child process of an actor. Ray places the actors and starts
them again. The package kofn must be installed on the nodes.
"""
from . import _child, _fleet, _lib

__all__ = ["fleet"]


class _Actor:
    """Keeps one worker of kofn as a child. Ray starts the actor again if its process was
    killed, and so another child."""

    def __init__(self, endpoint, options, threads, grace):
        self.child = _child.Child(endpoint, options, threads, grace)
        self.child.begin()


class _Actors:
    """The actors of a fleet. Ray ends them with the last reference to them."""

    def __init__(self, ray):
        self.ray, self.there = ray, []

    def over(self):
        """Returns False: Ray starts actors again."""
        return False

    def end(self):
        """Ends the actors; their children have been dismissed."""
        there, self.there = self.there, []
        for actor in there if self.ray.is_initialized() else ():
            self.ray.kill(actor)


def _host(ray):
    """Returns the address of this machine, with brackets if it is one of IPv6."""
    host = ray.util.get_node_ip_address().strip("[]")
    return f"[{host}]" if ":" in host else host


def fleet(workers=None, *, num_cpus=1, address=None, keys=None, worker_keys=None,
          insecure=False, module=None, grace=0, patience=60, **options):
    """Returns a kofn.Fleet with one worker in each of `workers` actors of Ray.

    workers    number of actors; None: of the nodes that are alive now.
    num_cpus   processors that Ray reserves for an actor, and threads of its worker.
    address    where this process listens. None: any free port of the address by which
               Ray knows this machine. All nodes must reach it. A program that uses
               Ray Client (ray://) must give it.
    keys, worker_keys
               folders with keys, of this process and of the nodes (`kofn keygen`). Each
               machine must have its folder; keys never pass through Ray.
               worker_keys=None: the same path as keys.
    insecure   without encryption where others can listen, as for kofn.Matrix.
    module     path of a Python file on the nodes, with part(part, parts, x),
               multiply(a, b) or keep(block): see kofn.serve.
    grace      seconds in which a worker finishes its tasks after SIGTERM.
    patience   seconds for which a worker looks for this process after losing it.
    options    of the actors, as ActorClass.options of Ray takes them, such as
               num_gpus, resources and runtime_env. The defaults are
               scheduling_strategy="SPREAD" and max_restarts=-1.

    Call ray.init first. A worker is a child process of its actor, and ends with it. If
    the actor or its node is killed, Ray starts the actor elsewhere, and its worker joins
    the fleet. A worker that is killed itself is started again.

    Close the fleet before ray.shutdown. Closing it ends the workers and the actors.

    This was not run with Ray itself. It is tested with a stand-in that has the same
    interface.
    """
    import ray

    if not ray.is_initialized():
        raise _lib.Invalid("Ray is not connected; call ray.init() first")
    if workers is None:
        workers = max(1, sum(bool(node["Alive"]) for node in ray.nodes()))
    host = _host(ray)
    given = _child.options(worker_keys or keys, insecure, module, grace, patience)
    it = _fleet.Fleet(address or f"tcp://{host}:*", workers, keys=keys, insecure=insecure)
    actors = it._held["trunk"].place = _Actors(ray)
    try:
        kind = ray.remote(_Actor).options(**{
            "num_cpus": num_cpus, "max_restarts": -1, "scheduling_strategy": "SPREAD",
            **options})
        for _ in range(it.size):
            actors.there.append(kind.remote(_child.reached(it.endpoint, host), given,
                                            max(1, int(num_cpus)), grace))
    except BaseException:
        it.close()
        raise
    return it
