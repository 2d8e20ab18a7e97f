"""Questions of the tests about the processes of this machine."""
import os
import time


def until(true, seconds=60):
    """Waits until true() is, and returns it."""
    end = time.monotonic() + seconds
    while not (now := true()):
        assert time.monotonic() < end, true
        time.sleep(0.01)
    return now


def alive(process):
    """True if the process is there and no zombie."""
    try:
        with open(f"/proc/{process}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def children(endpoint):
    """Returns the processes that work for that address, with their parents."""
    found = {}
    for process in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{process}/cmdline", "rb") as words, \
                    open(f"/proc/{process}/stat") as stat:
                if endpoint.encode() in words.read().split(b"\0"):
                    found[int(process)] = int(stat.read().rpartition(")")[2].split()[1])
        except OSError:
            pass
    return found
