"""All classes that variants put in the place of others."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import kemu
from kemu.emulated import variants


def replacements() -> Iterator[tuple[type, str, type]]:
    """The class that varies, the variant, and the class that replaces it; by module."""
    for module in sorted(one.name for one in pkgutil.walk_packages(kemu.__path__, "kemu.") if _has_variants(one.name)):
        importlib.import_module(module)
    for base, kinds in sorted(variants.REPLACEMENTS.items(), key=lambda item: (item[0].__module__, item[0].__name__)):
        if base.__module__.startswith("kemu."):
            for name, kind in kinds.items():
                yield base, name, kind


def _has_variants(module: str) -> bool:
    return module.endswith(".variants") and module != variants.__name__


def overridden(kind: type) -> list[str]:
    """What the class states itself."""
    own = {
        name: value for name, value in vars(kind).items() if name == "__init__" or not name.startswith(("__", "_abc"))
    }
    return [name for name, value in own.items() if inspect.isfunction(value) or hasattr(kind.__base__, name)]


def rows() -> list[tuple[str, str, list[str]]]:
    """For the table of docs/ablations.md."""
    return [(f"{base.__module__}.{base.__name__}", name, overridden(kind)) for base, name, kind in replacements()]
