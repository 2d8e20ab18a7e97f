"""Workers that are processes keep the memory of a round for the next."""
import numpy as np

import kofn


def faults(process):
    """Pages that the system had to give it."""
    with open(f"/proc/{process}/stat") as f:
        return int(f.read().rsplit(")", 1)[1].split()[7])


def test_workers_do_not_give_memory_back_each_round():
    length, rounds = 150_000, 20
    x = np.ones(length)
    with kofn.Sum(lambda part, parts, x: x * 2, length, scheme="gc:d=2", workers=3,
                  where="processes") as s:
        given = [[faults(p) for p in s.processes]]
        for _ in range(rounds):
            assert np.allclose(s(x), 2 * s.parts * x)
            given.append([faults(p) for p in s.processes])
    # A late worker has more open work now and then, but not in most rounds.
    pages = length * 8 // 4096
    grew = np.diff(given, axis=0) > pages / 2
    assert (grew.sum(axis=0) < rounds / 2).all(), given
