"""What a printer of a kind is: its columns, and the cells of one object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Cell = str | int | bool
Cells = Callable[[Any, int], list[Cell]]
"""The cells of an object at a time, in nanoseconds since 1970."""


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    description: str
    type: str = "string"
    format: str = ""
    priority: int = 0
    """1: only ``kubectl get -o wide`` shows it."""

    def document(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


@dataclass(frozen=True, slots=True)
class Printer:
    columns: tuple[Column, ...]
    cells: Cells


def wide(name: str, description: str, format_: str = "") -> Column:
    return Column(name, description, format=format_, priority=1)


NAME = Column("Name", "Name of the object, unique within its namespace and kind.", format="name")
AGE = Column("Age", "Time since the object was created.")
CONTAINERS = wide("Containers", "Names of the containers of the template.")
IMAGES = wide("Images", "Images of the containers of the template.")
SELECTOR = wide("Selector", "Selector of the pods that belong to the object.")
