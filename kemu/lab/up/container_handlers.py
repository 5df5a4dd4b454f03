"""Loads the functions that answer for containers: those that ``lives`` names, and those of ``kemu up --handlers
FILE.py``."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from kemu.emulated.gateway import handlers
from kemu.emulated.gateway.handlers import Handler, Handlers, Rule
from kemu.emulated.objects import selectors
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.pods.container_patterns import Patterns
from kemu.errors import KemuError
from kemu.lab.scenario.scenarios import Scenario
from kemu.messages.k8s import meta_v1_pb2
from kemu.runtime import user_code

_FUNCTIONS = {handlers.EXEC: "exec", handlers.ATTACH: "attach", handlers.PORT_FORWARD: "port_forward"}
_MODULE = "kemu_handlers"


def load(scenario: Scenario, file: Path | None) -> Handlers:
    """Raises KemuError that says what cannot be loaded, and why."""
    rules = []
    for lives in scenario.lives:
        if not lives.handlers:
            continue
        user_code.look_in(Path(scenario.file).parent)
        selector = convert.from_json(meta_v1_pb2.LabelSelector, lives.selector)
        patterns = Patterns(lives.owner, lives.image, lives.command, lives.args)
        by_kind = {kind: _named(name) for kind, name in lives.handlers.items()}
        rules.append(Rule(lives.namespace or "", selectors.compile_labels(selector), patterns, by_kind))
    return Handlers(tuple(rules), {} if file is None else _of_file(file))


def _named(name: str) -> Handler:
    try:
        return handlers.checked(user_code.load(name), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise KemuError(f"the handler {name} cannot be loaded: {error}") from None


def _of_file(file: Path) -> dict[str, Handler]:
    module = _module(file)
    found = {}
    for kind, name in _FUNCTIONS.items():
        if hasattr(module, name):
            try:
                found[kind] = handlers.checked(getattr(module, name), f"{file}: {name}")
            except ValueError as error:
                raise KemuError(str(error)) from None
    if not found:
        raise KemuError(f"{file}: has none of the functions {', '.join(_FUNCTIONS.values())}")
    return found


def _module(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(_MODULE, file)
    if spec is None or spec.loader is None or not file.is_file():
        raise KemuError(f"{file}: is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        place = user_code.place_of(error)
        where = f"{place}: " if place is not None else f"{file}: "
        raise KemuError(f"{where}{type(error).__name__}: {error}") from None
    return module
