"""What a column is: what heads it, and where its cells come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from google.protobuf.message import Message

from kemu.emulated.gateway.tables import texts

Cell = str | int | bool
Reader = Callable[[Any, int], Cell]
"""The cell of an object at a time, in nanoseconds since 1970."""


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    """Empty: a cell that has no column."""
    description: str
    value: str | Callable[..., Cell] = ""
    """The path of a field of the object, or a function of the object."""
    type: str = "string"
    format: str = ""
    priority: int = 0
    """1: only ``kubectl get -o wide`` shows it."""
    is_timed: bool = False
    """Whether the function takes the time, in nanoseconds since 1970, as well."""

    def document(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }

    def reader(self) -> Reader:
        value = self.value
        if self.is_timed and not isinstance(value, str):
            return value
        get: Callable[[Any], Cell] = attrgetter(value) if isinstance(value, str) else value
        return lambda obj, now_ns: get(obj)


def wide(name: str, description: str, value: str | Callable[..., Cell] = "") -> Column:
    return Column(name, description, value, priority=1)


def whole(name: str, description: str, value: str | Callable[..., Cell]) -> Column:
    return Column(name, description, value, "integer")


def flag(name: str, description: str, value: str | Callable[..., Cell]) -> Column:
    return Column(name, description, value, "boolean")


def timed(name: str, description: str, value: Callable[..., Cell]) -> Column:
    return Column(name, description, value, is_timed=True)


# Functions of objects -------------------------------------------------------------------------------------------------


def of(function: Callable[[Any], Cell], path: str) -> Callable[[Any], Cell]:
    """A function of the field at a path."""
    get = attrgetter(path)
    return lambda obj: function(get(obj))


def either(path: str, otherwise: str) -> Callable[[Any], Cell]:
    """A field, or what stands for an empty one."""
    get = attrgetter(path)
    return lambda obj: get(obj) or otherwise


def optional(path: str, otherwise: str) -> Callable[[Any], Cell]:
    """The text of a field, or what stands for an absent one."""
    *parents, field = path.split(".")
    get: Callable[[Any], Message] = attrgetter(".".join(parents)) if parents else lambda obj: obj
    return lambda obj: texts.optional(get(obj), field, otherwise)


def joined(path: str, field: str) -> Callable[[Any], Cell]:
    """A field of all elements of a list."""
    get = attrgetter(field)
    return of(lambda items: ",".join(map(get, items)), path)


# Columns of several kinds ---------------------------------------------------------------------------------------------

NAME = Column("Name", "Name of the object, unique within its namespace and kind.", "metadata.name", format="name")
AGE = timed("Age", "Time since the object was created.", texts.age)


def named(value: Callable[[Any], Cell]) -> Column:
    """A name with something behind it."""
    return replace(NAME, value=value)


def containers(path: str = "spec.template.spec") -> tuple[Column, Column]:
    """``layoutContainerCells`` of a PodSpec."""
    return (
        wide("Containers", "Names of the containers of the template.", joined(f"{path}.containers", "name")),
        wide("Images", "Images of the containers of the template.", joined(f"{path}.containers", "image")),
    )


def selector(value: Callable[[Any], Cell]) -> Column:
    return wide("Selector", "Selector of the pods that belong to the object.", value)
