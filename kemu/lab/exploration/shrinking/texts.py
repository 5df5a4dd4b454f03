"""A scenario as YAML that people like to read: blocks at the top, one line for each object where it fits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from kemu.emulated.objects.plain import Json
from kemu.lab.scenario.format import schema

_WIDTH = 120


def text(data: Mapping[str, Any]) -> str:
    """The document. Loading it gives the same data."""
    lines = []
    for key, value in _ordered(data).items():
        if key == "metadata":
            lines.append(_metadata(value))
        elif key == "spec":
            ordered = sorted(value, key=list(schema.SPEC.record.keys).index)
            lines.append("spec:\n" + "".join(_section(name, value[name], 2) for name in ordered))
        else:
            lines.append(f"{key}: {_flow(value)}\n")
    return "".join(lines)


def _metadata(value: Mapping[str, Any]) -> str:
    shown = f"metadata:\n  name: {value['name']}\n"
    description = value.get("description")
    if description:
        folded = _folded(" ".join(str(description).split()), 4)
        shown += f"  description: >-\n{folded}\n"
    return shown


def _folded(words: str, indent: int) -> str:
    lines, line = [], ""
    for word in words.split(" "):
        if line and indent + len(line) + 1 + len(word) > _WIDTH:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}" if line else word
    return "\n".join(" " * indent + each for each in (*lines, line))


def _section(name: str, value: Json, indent: int) -> str:
    flow = _flow(value)
    lead = f"{' ' * indent}{_flow(name)}:"
    is_short = len(lead) + 1 + len(flow) <= _WIDTH
    is_plain = isinstance(value, list) and not any(isinstance(item, Mapping | list) for item in value)
    if isinstance(value, list) and value and not (is_short and (is_plain or indent > 2)):
        return f"{lead}\n" + "".join(_item(item, indent + 2) for item in value)
    if isinstance(value, Mapping) and value and not is_short:
        return f"{lead}\n" + "".join(_section(key, item, indent + 2) for key, item in value.items())
    return f"{lead} {flow}\n"


def _item(item: Json, indent: int) -> str:
    flow = _flow(item)
    lead = " " * indent
    if indent + 2 + len(flow) <= _WIDTH or not isinstance(item, Mapping):
        return f"{lead}- {flow}\n"
    parts = "".join(_section(str(key), value, indent + 2) for key, value in item.items())
    return f"{lead}- {parts[indent + 2 :]}"


_FIRST = ("apiVersion", "kind", "metadata")


def _ordered(value: Json) -> Any:
    """Objects as people write them."""
    if isinstance(value, Mapping):
        first = [key for key in _FIRST if key in value] if "kind" in value else []
        return {key: _ordered(value[key]) for key in (*first, *(key for key in value if key not in first))}
    return [_ordered(item) for item in value] if isinstance(value, list) else value


def _flow(value: Json) -> str:
    dumped = yaml.dump(value, Dumper=_Dumper, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**6)
    return dumped.removesuffix("\n").removesuffix("\n...")


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Json) -> bool:
        return True

    def represent_text(self, data: str) -> yaml.ScalarNode:
        tag = "tag:yaml.org,2002:str"
        is_plain = self.resolve(yaml.ScalarNode, data, (True, False)) == tag  # type: ignore[no-untyped-call]
        return self.represent_scalar(tag, data, style=None if is_plain else '"')


_Dumper.add_representer(str, _Dumper.represent_text)
