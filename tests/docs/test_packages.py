"""The layout of kemu/ as its own documents state it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_MODULES = 15
MANY = {"kemu/emulated/scheduler/plugins"}
"""A module for each plugin, as Kubernetes has them."""


def packages() -> Iterator[Path]:
    for init in sorted((ROOT / "kemu").rglob("__init__.py")):
        if "messages" not in init.parts:
            yield init.parent


def inside(package: Path) -> list[str]:
    """Modules and packages."""
    modules = [each.stem for each in package.glob("*.py") if each.stem != "__init__"]
    return sorted([*modules, *(each.parent.name for each in package.glob("*/__init__.py"))])


@pytest.mark.parametrize("package", [str(each.relative_to(ROOT)) for each in packages()])
def test_a_package_says_what_each_of_its_modules_is_for(package: str) -> None:
    text = ast.get_docstring(ast.parse((ROOT / package / "__init__.py").read_text())) or ""
    unnamed = [name for name in inside(ROOT / package) if not re.search(rf"(?<!\w){name}(?!\w)", text)]
    assert not unnamed, f"{package}/__init__.py names them nowhere"


def test_a_folder_is_a_map_and_no_list() -> None:
    """More modules than that are read from top to bottom."""
    large = {str(each.relative_to(ROOT)): len([*each.glob("*.py")]) - 1 for each in packages()}
    assert {name: count for name, count in large.items() if count > MOST_MODULES and name not in MANY} == {}


def test_five_rooms() -> None:
    """And the public names of what plugins, extenders and tests import."""
    first = {each.parent.name for each in (ROOT / "kemu").glob("*/__init__.py")}
    assert first == {"messages", "runtime", "emulated", "lab", "doors", "scheduler", "testing"}
