"""Without PYTHONPATH the package of this checkout is tested, as `make python`
has built it."""
import importlib.util
import pathlib
import signal
import sys

if importlib.util.find_spec("kofn") is None:
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

# The tests interrupt themselves. A script's background process ignores SIGINT, so
# restore the handler.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config):
    config.addinivalue_line("markers", "night: runs by night only (tests/tiers.cmake)")
