"""Cases from custom resource definitions: each validation rule with its schema, and documents drawn for it.

    python -m tests.cel.crds NAME=DIRECTORY … > cases.jsonl

reads all CRDs below the directories.
"""

from __future__ import annotations

import json
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

_DROPPED = frozenset({"description", "example", "externalDocs", "title", "x-kubernetes-validations"})
_LITERAL = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_NUMBER = re.compile(r"(?<![\w.])\d+(?![\w.])")
_LARGEST = 12_000


def schemas(path: Path) -> Iterator[dict[str, Any]]:
    """The schemas of the versions of all CRDs in a file."""
    try:
        documents = list(yaml.load_all(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
    except (yaml.YAMLError, UnicodeDecodeError):
        return
    for document in documents:
        if not isinstance(document, dict) or document.get("kind") != "CustomResourceDefinition":
            continue
        for version in (document.get("spec") or {}).get("versions") or ():
            schema = (version.get("schema") or {}).get("openAPIV3Schema")
            if schema:
                yield schema


def rules(schema: dict[str, Any], root: bool = True) -> Iterator[tuple[dict[str, Any], str, bool, bool]]:
    """Schema, expression, whether the schema is of the whole object, and whether oldSelf is optional: of each rule."""
    for rule in schema.get("x-kubernetes-validations") or ():
        for expression in (rule.get("rule"), rule.get("messageExpression")):
            if expression:
                yield schema, expression, root, bool(rule.get("optionalOldSelf"))
    for name, inner in sorted((schema.get("properties") or {}).items()):
        if not (root and name in ("apiVersion", "kind", "metadata")):
            yield from rules(inner, False)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from rules(schema[key], False)


def plain(schema: Any) -> Any:
    """A schema without words."""
    if isinstance(schema, list):
        return [plain(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: plain(inner) for name, inner in value.items()} if key == "properties" else plain(value)
        for key, value in schema.items()
        if key not in _DROPPED
    }


class Documents:
    """Draws documents of a schema; strings and numbers are often those that the rule names."""

    def __init__(self, draw: random.Random, expression: str) -> None:
        self.draw = draw
        self.strings = [first or second for first, second in _LITERAL.findall(expression)]
        self.numbers = [int(number) for number in _NUMBER.findall(expression) if len(number) < 10]
        self.names = set(re.findall(r"\w+", expression))

    def value(self, schema: dict[str, Any], density: float) -> Any:
        if schema.get("enum"):
            return self.draw.choice(schema["enum"])
        if schema.get("x-kubernetes-int-or-string"):
            return self.draw.choice([5, "50%", "http", 8080])
        match schema.get("type"):
            case "object":
                return self._object(schema, density)
            case "array":
                most = min(schema.get("maxItems", 3), 3)
                count = self.draw.randint(min(schema.get("minItems", 0), most), most)
                return [self.value(schema["items"], density) for _ in range(count)]
            case "string":
                return self._string(schema)
            case "integer":
                return self.draw.choice([*self.numbers, 0, 1, schema.get("minimum", 1), schema.get("maximum", 10)])
            case "number":
                return self.draw.choice([*self.numbers, 0.5, 1.0, 2])
            case "boolean":
                return self.draw.random() < 0.5
        return "free" if schema.get("x-kubernetes-preserve-unknown-fields") else None

    def _object(self, schema: dict[str, Any], density: float) -> Any:
        values = schema.get("additionalProperties")
        if isinstance(values, dict):
            keys = self.draw.sample(
                ["a", "app.kubernetes.io/name", "karpenter.sh/x", *self.strings], k=self.draw.randint(0, 3)
            )
            return {key: self.value(values, density) for key in keys}
        required = set(schema.get("required") or ())
        result = {}
        for name, inner in sorted((schema.get("properties") or {}).items()):
            chance = 1.0 if name in required else max(density, 0.7 if name in self.names else 0.0)
            if self.draw.random() < chance and len(json.dumps(result)) < 2000:
                value = self.value(inner, density * 0.7)
                if value is not None:
                    result[name] = value
        return result

    def _string(self, schema: dict[str, Any]) -> str:
        match schema.get("format"):
            case "date-time":
                return self.draw.choice(["2024-01-01T00:00:00Z", "2024-06-01T12:30:00+02:00"])
            case "date":
                return "2024-02-29"
            case "duration":
                return self.draw.choice(["1h", "30s", "1m30s"])
            case "byte":
                return "aGVsbG8="
        own = ["", "a", "foo", "example.com", "Gateway", "10.0.0.1", "10Gi", "1h", "http://example.com/x", "v1", "*"]
        pool = [*self.strings, *self.strings, *own] if self.strings else own
        text = self.draw.choice(pool)
        if len(text) > schema.get("maxLength", 10_000):
            text = text[: schema["maxLength"]]
        return text


def cases(paths: list[str]) -> Iterator[dict[str, Any]]:
    """A case for each rule and document, in the order of the files."""
    seen: set[str] = set()
    for name_and_path in paths:
        name, _, directory = name_and_path.partition("=")
        for path in sorted(Path(directory).rglob("*.y*ml")):
            for schema in schemas(path):
                for inner, expression, root, optional in rules(schema):
                    reduced = plain(inner)
                    key = f"{expression} {json.dumps(reduced, sort_keys=True)}"
                    if key in seen or len(key) > _LARGEST:
                        continue
                    seen.add(key)
                    draw = random.Random(f"{name} {expression}")
                    drawn = Documents(draw, expression)
                    for density in (0.2, 0.6) if len(key) < 3000 else (0.4,):
                        case = {"expression": expression, "schema": reduced, "self": drawn.value(reduced, density)}
                        if "oldSelf" in expression:
                            case["oldSelf"] = drawn.value(reduced, density)
                        if root:
                            case["root"] = True
                            case["self"] |= {
                                "apiVersion": "example.com/v1",
                                "kind": "Example",
                                "metadata": {"name": "one"},
                            }
                        if optional:
                            case["optionalOldSelf"] = True
                        yield {"case": case}


if __name__ == "__main__":
    for line in cases(sys.argv[1:]):
        print(json.dumps(line, ensure_ascii=False, separators=(",", ":")))
