"""Masterless iterations, on equal nodes."""
import dataclasses
import os
import threading

from . import _lib
from ._fleet import Keys, net_options
from ._job import choice
from ._lib import Invalid, SECOND, TooFewWorkers, begun, check, ffi, lib, new


@dataclasses.dataclass(frozen=True)
class Mesh:
    """A node's final view of the others (docs/masterless.md)."""

    members: int   # nodes of the last epoch
    epochs: int    # number of epochs the node entered
    liars: int     # nodes that sent it wrong partial products
    left_out: int  # partial products it ignored because they were wrong or doubtful
    finished: int  # nodes of this process that have the result


class Node:
    """Runs a node on its own thread; `live(transport, peers, view)` is the library's
    call."""

    def __init__(self, number, nodes, transport, live, options):
        self.stop = False
        self.status, self.error = lib.KOFN_AGAIN, None
        self.view = begun("kofn_node_view")
        self._transport, self._live = transport, live
        self._handle = ffi.new_handle(self)
        self._peers = p = begun("kofn_peer_options", nodes=nodes, seat=number,
                                **options)
        p.watch, p.watch_ud = lib.kofn_py_node, self._handle
        self.thread = threading.Thread(target=self._run)
        # an interrupted join marks the thread as ended (Python 3.11)
        self.over = threading.Event()

    def _run(self):
        try:
            self.status = self._live(self._transport, self._peers, self.view)
            check(self.status)  # on this thread: its message belongs to the thread
        except BaseException as e:
            self.error = e
        finally:
            self._transport.close(self._transport, SECOND)
            self.over.set()

    def end(self):
        """Waits for the stopped node. Its borrowed objects are free afterwards, so
        not even Ctrl-C ends this earlier."""
        if self.thread.ident is None:  # it could not be started
            self._transport.close(self._transport, 0)
            return
        while not self.over.is_set():
            try:
                self.over.wait()
            except KeyboardInterrupt:
                pass
        self.thread.join()

    @property
    def finished(self):
        return self.error is None and self.status == lib.KOFN_OK and \
            self.view.final


@ffi.def_extern(error=1)
def kofn_py_node(ud, view, scalar):
    return ffi.from_handle(ud).stop


def _join_all(mesh, nodes):
    ends, out = [], ffi.new("kofn_transport **")
    try:
        for _ in range(nodes):
            check(lib.kofn_mesh_join(mesh, out))
            ends.append(out[0])
    except BaseException:
        for t in ends:
            t.close(t, 0)
        raise
    return ends


def transports(nodes, masterless, reach, keys, longest):
    """Returns the transports of all nodes of this process, and the objects they
    borrow."""
    if masterless is True:
        mesh = ffi.gc(new(lib.kofn_mesh_new), lib.kofn_mesh_free)
        return _join_all(mesh, nodes), [mesh]
    if "://" not in str(masterless):
        raise Invalid(f"masterless={masterless!r} is neither True, all nodes in "
                      'this process, nor an address of this one, such as '
                      '"tcp://127.0.0.1:5001"')
    options, borrowed = net_options(keys)
    options.body_max = longest + 65536
    transport = new(lib.kofn_net_mesh, _lib.text("masterless", masterless), options)
    try:
        for address in [reach] if isinstance(reach, str) else reach:
            check(transport.reach(transport, _lib.text("reach", address)))
    except BaseException:
        transport.close(transport, 0)
        raise
    return [transport], [options, borrowed]


def kept(checkpoint, every, resume):
    """Returns peer options that let a node save its state in that folder."""
    if checkpoint is None:
        if resume or every is not None:
            raise Invalid("resume= and every= are for checkpoint=, a folder")
        return {}
    os.makedirs(checkpoint, exist_ok=True)
    if not resume and any(name.startswith("seat-")
                          for name in os.listdir(checkpoint)):
        raise Invalid(f"checkpoint={str(checkpoint)!r}: another run has kept "
                      "something there; go on with it by resume=True, or name "
                      "another folder")
    return {"keep": _lib.path("checkpoint", checkpoint),
            "every": every or 1, "resume": resume}


# Options of a node that a job has not, with their defaults.
OPTIONS = {"reach": (), "confirm": None}


def run(make_live, nodes, masterless, *, longest, plan, reach=(), keys=None,
        insecure=False, tls_ca=None, tls_cert=None, tls_key=None, errors=None,
        confirm=None, patience=None, more=None):
    """Runs all nodes of this process until each has the result or fails. Returns the
    number of one that has it, and the Mesh. `make_live(i)` returns Node's live;
    `more` are other peer options.

    Ctrl-C lets them leave within about a tenth of a second."""
    searched = choice("errors", errors)
    here = masterless is True
    if here:  # too few threads would wait forever for another
        check(lib.kofn_nodes_find(plan, searched, nodes))
    ends, keep = transports(nodes, masterless, reach,
                            Keys(keys, insecure, tls_ca, tls_cert, tls_key),
                            longest)
    options = {
        "errors": searched,
        # nodes of one process are not hostile to each other
        "confirm": confirm if confirm is not None
        else 1 if here and not searched else 0,
        "give_up": _lib.seconds("patience", patience or
                                (5 if here else 60)),
        "decoding": lib.KOFN_DECODE_REPLICATED if searched
        else lib.kofn_decoding_for(plan, nodes, 0, 0, 0), **(more or {})}
    all_nodes = [Node(i if here else 2**32 - 1, nodes, t, make_live(i), options)
                 for i, t in enumerate(ends)]
    try:
        for node in all_nodes:
            node.thread.start()
        for node in all_nodes:
            while not node.over.wait(0.1):  # another thread may receive the signal
                pass
    finally:  # also after Ctrl-C
        for node in all_nodes:
            node.stop = True
        for node in all_nodes:
            node.end()
        del keep
    return _gather(all_nodes)


def _gather(nodes):
    have = [i for i, node in enumerate(nodes) if node.finished]
    if not have:
        errors = [node.error for node in nodes if node.error is not None]
        # the others of a node that failed so may only miss it
        first = [e for e in errors if getattr(e, "status", "") == "NONFINITE"]
        for e in first + errors:
            raise e
        raise TooFewWorkers("no node is left that has the result")
    v = nodes[have[0]].view
    return have[0], Mesh(v.members, v.epoch.number, v.liars, v.left_out,
                         len(have))
