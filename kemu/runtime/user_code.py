"""Code that users bring along: scheduler plugins, extenders, schedulers of their own.

Role: finds it (``module:Class``, on Python's path or in the folder of the scenario), and tells whether an exception
came from it. The code that runs it, in sim or in a cell of Ray, makes its failure with :func:`failed`.
"""

from __future__ import annotations

import importlib
import linecache
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from kemu.errors import ActorCrashed, ActorFailed, ApiError, KemuError, UserCodeFailed

NAME = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
"""``module:Class``."""

_NOT_THEIRS = {
    *sys.stdlib_module_names,
    "_pytest", "google", "grpc", "grpc_health", "grpc_reflection", "kemu", "msgpack", "numpy", "opentelemetry",
    "pluggy", "pytest", "ray", "rich", "yaml",
}  # fmt: skip
"""Python's, kemu's and their dependencies' packages."""

_BUG = "this is a bug in kemu"
_PREFIX = "in your own code: "
_PLACE = re.compile(rf"^{_PREFIX}(.+):(\d+) in (\S+)", re.MULTILINE)
_CALL = re.compile(
    r"^plugin (?P<plugin>\S+), extension point (?P<point>\w+)(?:, pod (?P<pod>[^\s,]+))?(?:, node (?P<node>\S+))?$",
    re.MULTILINE,
)

_given: dict[str, Any] = {}
"""What :func:`name_of` has named and no import finds."""

_admitted: frozenset[str] | None = None
"""All that may be loaded; None: everything."""

_folders: list[str] = []
"""Folders of scenarios, as far as they have been added to Python's path."""


@dataclass(frozen=True, slots=True)
class Place:
    """A line of the user's code."""

    file: str
    line: int
    function: str
    """As Python qualifies it: ``FirstFit.run``."""

    def __str__(self) -> str:
        source = linecache.getline(self.file, self.line).strip()
        return f"{self.file}:{self.line} in {self.function}" + (f": {source}" if source else "")


@dataclass(frozen=True, slots=True)
class Call:
    """What a plugin was called for when it raised."""

    plugin: str
    extension_point: str
    pod: str = ""
    node: str = ""

    def __str__(self) -> str:
        text = f"plugin {self.plugin}, extension point {self.extension_point}"
        text += f", pod {self.pod}" if self.pod else ""
        return text + (f", node {self.node}" if self.node else "")


class Callee:
    """Base of classes that users derive from: says what a method of theirs was called for."""

    def call(self, function: str, known: Iterable[Any]) -> Call | None:
        """``known``: the variables of the callers and of the method, outermost first. None: nothing to tell."""
        return None


def look_in(folder: Path) -> None:
    """Modules are found in this folder too, after all others; cells of Ray find them there as well."""
    name = str(folder.resolve())
    if name in _folders:
        _folders.remove(name)
    if name not in sys.path:
        sys.path.append(name)
    _folders.append(name)
    importlib.invalidate_caches()


def name_of(made: Callable[..., Any]) -> str:
    """``module:Class`` of a class that a program has at hand; :func:`load` finds it, in this process in any case."""
    name = f"{made.__module__}:{made.__qualname__}"
    try:
        if load(name) is made:
            return name
    except (ImportError, AttributeError):
        pass
    # It is defined in a function, say.
    name = name.replace("<locals>", "locals")
    _given[name] = made
    return name


def is_importable(name: str) -> bool:
    """Whether other processes find it, too."""
    return name not in _given and not name.startswith("__main__:")


def named_in(data: object) -> Iterator[str]:
    """Everything in plain data that looks like ``module:Class``."""
    if isinstance(data, str):
        if NAME.fullmatch(data):
            yield data
    elif isinstance(data, Mapping):
        for value in data.values():
            yield from named_in(value)
    elif isinstance(data, list | tuple):
        for value in data:
            yield from named_in(value)


def is_in(config: object) -> bool:
    """Whether an actor with that config runs code that users have brought along."""
    return not all(name.startswith("kemu.") for name in named_in(config))


def admit_only(names: Iterable[str]) -> None:
    """From now on :func:`load` loads nothing else in this process. For processes that load what others name."""
    global _admitted
    _admitted = frozenset(names)


def is_admitted(name: str) -> bool:
    return _admitted is None or name in _admitted


def load(name: str) -> Any:
    """What ``module:Class`` names.

    Raises ImportError or AttributeError where there is no such thing, and UserCodeFailed where its module raises.
    """
    if not is_admitted(name):
        raise ImportError(f"{name} is not named by the scenario")
    if name in _given:
        return _given[name]
    module, _, attribute = name.partition(":")
    try:
        found = importlib.import_module(module)
    except ImportError:
        raise
    except Exception as error:
        raise failed(f"{name} cannot be loaded: {type(error).__name__}: {error}", error) from error
    _check_folder(module, getattr(found, "__file__", None))
    for part in attribute.split("."):
        found = getattr(found, part)
    return found


def _check_folder(module: str, file: str | None) -> None:
    """Two scenarios with modules of one name, in one process: the second would silently get the first one's."""
    if file is None or not _folders:
        return
    root = module.partition(".")[0]
    latest = Path(_folders[-1])
    mine = next((path for path in (latest / f"{root}.py", latest / root / "__init__.py") if path.is_file()), None)
    from_scenario = any(Path(folder) in Path(file).resolve().parents for folder in _folders)
    if mine is not None and from_scenario and latest not in Path(file).resolve().parents:
        raise ImportError(f"module {root} of another scenario, {file}, is in use: rename {mine}")


def call_of(error: BaseException) -> Call | None:
    """What the user's class was called for that the exception passed through, as far as it can tell."""
    found: Call | None = None
    known: list[Any] = []
    step: TracebackType | None = error.__traceback__
    while step is not None:
        variables = step.tb_frame.f_locals
        known += variables.values()
        callee = variables.get("self")
        if isinstance(callee, Callee) and not _is_ours(type(callee).__module__):
            found = callee.call(step.tb_frame.f_code.co_name, known) or found
        step = step.tb_next
    return found


def _is_ours(module: str) -> bool:
    """Whether a module is of kemu, or of a package that it needs."""
    return module.partition(".")[0] in _NOT_THEIRS


def place_of(error: BaseException) -> Place | None:
    """The innermost line of the user's code that the exception passed through; None: it was not in any."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        return Place(error.filename, error.lineno or 0, "<module>")
    found: Place | None = None
    step: TracebackType | None = error.__traceback__
    while step is not None:
        frame = step.tb_frame
        module = str(frame.f_globals.get("__name__", ""))
        if module and not _is_ours(module) and not frame.f_code.co_filename.startswith("<"):
            found = Place(frame.f_code.co_filename, step.tb_lineno, frame.f_code.co_qualname)
        step = step.tb_next
    return found


def failed(text: str, error: BaseException) -> ActorFailed:
    """The failure of an actor; UserCodeFailed, with the place in its text, where the user's code raised; ActorCrashed
    where kemu's raised what it did not mean to raise."""
    place = place_of(error)
    if place is None:
        meant = isinstance(error, KemuError | OSError | MemoryError) and not isinstance(error, ApiError)
        return ActorFailed(text) if meant else ActorCrashed(f"{text}\n{_BUG}")
    call = call_of(error)
    return from_text(f"{text}\n{_PREFIX}{place}" + (f"\n{call}" if call is not None else ""))


def from_text(text: str) -> ActorFailed:
    """The failure that :func:`failed` made in another process."""
    match = _PLACE.search(text)
    if match is None:
        return ActorCrashed(text) if text.endswith(f"\n{_BUG}") else ActorFailed(text)
    call = _CALL.search(text)
    what = (call["plugin"], call["point"], call["pod"] or "", call["node"] or "") if call is not None else ()
    return UserCodeFailed(text, match[1], int(match[2]), match[3].rstrip(":"), *what)
