"""kemu: a Kubernetes scheduling control plane to race, starve and break, in virtual time or on Ray.

For programs: ``kemu.run`` and what :data:`__all__` names beside it (docs/api.md). They are imported when they are first
used, so ``import kemu`` costs nothing; ``__init__.pyi`` has their types.

__main__    ``python -m kemu`` is the command ``kemu``
_moved      module paths of earlier versions: ``kemu.store.server`` is ``kemu.emulated.store.server``
doors       how one comes in
emulated    what is emulated: the objects of a cluster, and the components that work on them
errors      the exceptions of kemu, all in one tree
lab         what one does with an emulated cluster
messages    generated code, from proto/ by scripts/genproto
runtime     where actors live: one ``Env``, four runtimes: ``sim`` in virtual time
scheduler   what authors of plugins and extenders import: ``framework``, ``extenders``
testing     helpers for tests of actors: the names of ``testing``
"""

import os

from kemu import _moved

# gRPC reads this when it is first imported, by whichever module. kemu never forks with gRPC at work, but Ray starts its
# processes from the driver, and gRPC would remark on each of them on the terminal.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

_moved.install()

__version__ = "0.1.0"

_MODULES = {
    "run": "runs",
    "Run": "runs",
    "Event": "run_logs",
    "events": "run_logs",
    "Pod": "views",
    "Moment": "views",
    "Wait": "views",
    "Finding": "views",
    "RunFailed": "reports",
    "Cluster": "live_clusters",
    "cluster": "live_clusters",
    "pod": "live_clusters",
    "simulate": "simulations",
    "Exploration": "explorations",
    "explore": "explorations",
    "HuntResult": "hunts",
    "HuntUnsettled": "hunts",
    "hunt": "hunts",
    "Results": "results",
    "results": "results",
    "Sweep": "sweeps",
    "compare": "sweeps",
    "experiment": "sweeps",
}
"""Where each name comes from, in kemu.doors.api."""

__all__ = [
    "Cluster",
    "Event",
    "Exploration",
    "Finding",
    "HuntResult",
    "HuntUnsettled",
    "Moment",
    "Pod",
    "Results",
    "Run",
    "RunFailed",
    "Sweep",
    "Wait",
    "cluster",
    "compare",
    "events",
    "experiment",
    "explore",
    "hunt",
    "pod",
    "results",
    "run",
    "simulate",
]


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module 'kemu' has no attribute {name!r}")
    import importlib

    found = globals()[name] = getattr(importlib.import_module(f"kemu.doors.api.{_MODULES[name]}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
