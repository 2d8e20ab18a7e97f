"""python -m kofn worker ADDRESS [--module FILE] [--keys DIR]"""
import argparse
import importlib.util
import sys

from . import Error, serve
from ._worker import Leaving, size


def load(path):
    """Returns the functions of a Python file, as arguments of serve()."""
    spec = importlib.util.spec_from_file_location("kofn_worker_module", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = {argument: getattr(module, name) for argument, name in
             (("f", "part"), ("multiply", "multiply"), ("keep", "keep"))
             if callable(getattr(module, name, None))}
    if not {"f", "multiply"} & set(found):
        sys.exit(f"{path} has no function part(part, parts, x), and none "
                 "multiply(a, b)")
    return found


def main():
    p = argparse.ArgumentParser(
        prog="python -m kofn",
        description="A worker with functions written in Python.",
        epilog="example: python -m kofn worker tcp://HEAD:5555 "
               "--module job.py, where job.py has part(part, parts, x)")
    sub = p.add_subparsers(dest="command", required=True)
    w = sub.add_parser("worker", help="work for the coordinator at an address")
    w.add_argument("address", help="tcp://HOST:PORT or ipc://PATH")
    w.add_argument("--module", metavar="FILE",
                   help="a Python file with part(part, parts, x), of which "
                        "sums are made, or multiply(a, b), which makes "
                        "products, and perhaps keep(block): kofn.serve")
    w.add_argument("--keys", metavar="DIR", help="as of kofn worker")
    for option in "--tls-ca", "--tls-cert", "--tls-key":
        w.add_argument(option, metavar="FILE", help="as of kofn worker")
    w.add_argument("--insecure", action="store_true",
                   help="without encryption where others can listen")
    w.add_argument("--once", action="store_true", help="as of kofn worker")
    w.add_argument("--name", help="as of kofn worker")
    w.add_argument("--patience", type=float, metavar="SECONDS",
                   help="longest time without a coordinator")
    w.add_argument("--with-parent", action="store_true",
                   help="end when the process that started this one ends")
    w.add_argument("--grace", type=float, default=0, metavar="SECONDS",
                   help="after SIGTERM, seconds to finish outstanding work (0)")
    w.add_argument("--memory", type=size, metavar="BYTES",
                   help="as of kofn worker: a number that may end in k, M or G")
    w.add_argument("--data-path", metavar="DIR", help="as of kofn worker")
    a = p.parse_args()
    try:
        serve(a.address, **(load(a.module) if a.module else {}), keys=a.keys,
              insecure=a.insecure, patience=a.patience, tls_ca=a.tls_ca,
              tls_cert=a.tls_cert, tls_key=a.tls_key, once=a.once, name=a.name,
              with_parent=a.with_parent, grace=a.grace, memory=a.memory,
              data_path=a.data_path)
        if Leaving.caught:
            sys.exit(143)
    except KeyboardInterrupt:
        sys.exit(130)
    except (Error, OSError) as e:
        sys.exit(f"kofn: {e}")


if __name__ == "__main__":
    main()
