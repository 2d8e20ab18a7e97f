"""calc -- one Python process for all tests of a file. `py` and `json` of helpers.bash use
it, since `import numpy` takes longer than most computations of the tests.

    calc.py FIFO

A request is four fields, each followed by a zero byte: "py" or "json", the asking process,
its folder, and the code. The answer goes to the FIFO with that process number in its name.
It has two fields: the exit status, and the output. A fork of this process computes each
request, so that requests do not affect each other.
"""
import os
import select
import sys
import traceback

# A fork does not have the threads of OpenBLAS.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
KEPT = 30000 # bytes of output: an answer has to fit into a FIFO


def compute(kind, pid, folder, code):
    """Computes a request in the fork. Returns the exit status."""
    try:
        os.chdir(folder)
        space = {"__name__": "__main__"}
        if kind == "json":
            import json
            with open(f"/proc/{pid}/fd/0") as f:
                space.update(sys=sys, json=json, o=json.load(f))
            if eval(code, space):
                return 0
            print(str(space["o"])[:600])
            return 1
        import numpy
        space["np"] = numpy
        exec(compile(code, "<py>", "exec"), space)
        space.clear() # closes files, so that they are complete
        return 0
    except SystemExit as e:
        if e.code is None or isinstance(e.code, int):
            return e.code or 0
        print(e.code)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1


def answer(kind, pid, folder, code):
    out = os.memfd_create("out")
    child = os.fork()
    if child == 0:
        os.dup2(out, 1)
        os.dup2(out, 2)
        status = 1
        try:
            status = compute(kind, pid, folder, code)
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status & 255)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    said = os.pread(out, KEPT, 0)
    os.close(out)
    return b"%d\0%s\0" % (status if status >= 0 else 128 - status,
                          said.replace(b"\0", b"?"))


def main():
    fifo, parent = sys.argv[1], os.getppid()
    os.closerange(3, 256)
    asks = os.open(fifo, os.O_RDWR)
    left = b""
    while os.getppid() == parent: # else the tests were killed
        if not select.select([asks], [], [], 5)[0]:
            continue
        left += os.read(asks, 65536)
        while left.count(b"\0") >= 4:
            *words, left = left.split(b"\0", 4)
            kind, pid, folder, code = (os.fsdecode(w) for w in words)
            if kind == "py":
                import numpy # once, for all forks
            else:
                import json
            said = answer(kind, pid, folder, code)
            try:
                reply = os.open(f"{fifo}.{pid}", os.O_WRONLY | os.O_NONBLOCK)
            except OSError: # whoever asked was ended
                continue
            os.write(reply, said)
            os.close(reply)


if __name__ == "__main__":
    main()
