"""kemu's CEL against Kubernetes': messages, types, estimates, values, errors and costs of recorded cases."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cel import comparing, crds, differences, expressions, mixtures

DATA = Path(__file__).parent / "data"
FILES = {"crds": 769, "expressions": 12_128, "go_tests": 3_615, "mixtures": 2_993}


def recorded(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(DATA / f"{name}.jsonl.gz", "rt") as lines:
        for line in lines:
            yield json.loads(line)


@pytest.mark.parametrize("name", sorted(FILES))
def test_kemu_answers_as_kubernetes_does(name: str) -> None:
    wrong: list[str] = []
    count = 0
    for line in recorded(name):
        count += 1
        expression = line["case"]["expression"]
        found = comparing.differences(line["case"], line["expect"])
        expected = differences.reason(expression)
        if found and expected is None:
            wrong.append("\n    ".join([expression[:300], *found]))
        if not found and expected is not None:
            wrong.append(f"{expression[:300]}\n    is listed as a difference, but there is none")
    assert not wrong, f"{len(wrong)} of {count}:\n" + "\n".join(wrong[:20])
    assert count == FILES[name]


def test_the_cases_have_all_outcomes() -> None:
    outcomes = {"issues": 0, "program": 0, "value": 0, "error": 0}
    unbounded = 0
    for name in FILES:
        for line in recorded(name):
            outcomes[next(key for key in outcomes if key in line["expect"])] += 1
            unbounded += line["expect"]["high"] == (1 << 64) - 1
    assert min(outcomes.values()) > 100
    assert unbounded > 100


def test_every_function_and_overload_is_called_in_some_case() -> None:
    """An overload that no recorded case resolves to would be an unproved claim."""
    from kemu.emulated import cel
    from kemu.emulated.cel import libraries
    from kemu.emulated.cel.parsing.syntax import Call, walk

    called: set[str] = set()
    for name in ("expressions", "go_tests"):
        for line in recorded(name):
            case = line["case"]
            if "type" not in line["expect"]:
                continue
            declared = dict.fromkeys(case.get("variables", {}), cel.types.DYN)
            if "schema" in case:
                root = cel.schemas.declared(case["schema"])
                assert root is not None
                declared |= {"self": root, "oldSelf": root}
            declared["authorizer"] = cel.authorizers.AUTHORIZER
            try:
                program = cel.Environment(declared, libraries=["bindings", "mutation"]).compile(case["expression"])
            except cel.CompileError:
                continue
            for node, _ in walk(program._tree):
                if isinstance(node, Call):
                    called.update(node.overloads)
    every = {
        overload.id for function in libraries.functions(True)._functions.values() for overload in function.overloads
    }
    assert sorted(every - called) == []


def test_cases_are_drawn_alike_each_time() -> None:
    first = list(expressions.cases())
    assert first == list(expressions.cases())
    assert len(first) > 12_000
    assert list(mixtures.cases(1, 50)) == list(mixtures.cases(1, 50))
    assert list(mixtures.cases(1, 50)) != list(mixtures.cases(2, 50))


def test_documents_are_of_their_schema(tmp_path: Path) -> None:
    definition = {
        "kind": "CustomResourceDefinition",
        "spec": {
            "versions": [
                {
                    "schema": {
                        "openAPIV3Schema": {
                            "type": "object",
                            "properties": {
                                "spec": {
                                    "type": "object",
                                    "required": ["mode"],
                                    "properties": {
                                        "mode": {"type": "string", "enum": ["A", "B"], "description": "words"}
                                    },
                                    "x-kubernetes-validations": [
                                        {"rule": "self.mode == oldSelf.mode", "message": "fixed"}
                                    ],
                                }
                            },
                        }
                    }
                }
            ]
        },
    }
    (tmp_path / "crd.yaml").write_text(json.dumps(definition))
    drawn = [line["case"] for line in crds.cases([f"own={tmp_path}"])]
    assert len(drawn) == 2
    assert all(case["self"]["mode"] in ("A", "B") and "oldSelf" in case for case in drawn)
    assert "description" not in json.dumps(drawn)
