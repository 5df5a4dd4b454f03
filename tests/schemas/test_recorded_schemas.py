"""What kemu says of definitions and objects is what a real kube-apiserver said (`recording.json.gz`, by
`record.py`)."""

from __future__ import annotations

import copy
import gzip
import json
import pathlib
from typing import Any

import pytest

from kemu import errors
from kemu.emulated.objects import names
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.managed_fields import managers, resets
from kemu.emulated.objects.validation import metadata as object_metadata
from kemu.emulated.schemas import openapi, problems
from kemu.emulated.schemas.definitions import checks
from kemu.emulated.schemas.versions import CustomSchema
from kemu.errors import Cause
from kemu.messages.k8s import meta_v1_pb2
from tests.schemas import cases
from tests.schemas.record import bare

RECORDING = json.loads(gzip.decompress((pathlib.Path(__file__).parent / "recording.json.gz").read_bytes()))


def _told(causes: list[Cause]) -> set[tuple[str, str, str]]:
    return {(one.field, one.reason, one.message) for one in causes}


def _recorded(answer: dict[str, Any]) -> set[tuple[str, str, str]]:
    """Causes say nothing of types of refusals beside the known ones: then the message does."""
    return {(one.get("field", ""), one["reason"], one["message"]) for one in answer.get("causes", ())}


@pytest.mark.parametrize("name", cases.DEFINITIONS)
def test_a_definition_is_judged_as_by_kubernetes(name: str) -> None:
    case, answer = cases.DEFINITIONS[name], RECORDING[name]["definition"]
    found: list[Cause] = []
    has_status = "status" in (case.subresources or {})
    checks.check(case.schema, "spec.validation", found, has_status=has_status)
    assert _told(found) == _recorded(answer)
    assert bool(found) == (answer["code"] != 201)


def test_openapi_says_what_kubernetes_publishes() -> None:
    kind = openapi.Kind(cases.GROUP, "v1", "Thing", "ThingList", "things", (".spec.a",))
    for path, recorded in RECORDING["published"].items():
        found = openapi.definitions(cases.PUBLISHED, kind, v2=path.endswith("v2"))
        for name, one in recorded.items():
            assert bare(found[f"com.example.cases.v1.{name}"]) == one, path


STEPS = [(name, key) for name, case in cases.DEFINITIONS.items() for key in case.objects]


@pytest.mark.parametrize(("name", "key"), STEPS, ids=[f"{name}-{key}" for name, key in STEPS])
def test_an_object_is_judged_as_by_kubernetes(name: str, key: str) -> None:
    if "objects" not in RECORDING[name]:
        pytest.fail("the definition was refused")
    _Life(name, key).play(RECORDING[name]["objects"][key])


class _Life:
    """The steps of an object, as the API server takes them."""

    def __init__(self, name: str, key: str) -> None:
        self._name = name
        self._key = key
        self._case = cases.DEFINITIONS[name]
        self._schema = CustomSchema(self._case.schema)
        self._live: dict[str, Any] | None = None
        self._subresources = self._case.subresources or {}

    def play(self, answers: list[dict[str, Any]]) -> None:
        for index, (step, answer) in enumerate(zip(self._case.objects[self._key], answers, strict=True)):
            verb = step["verb"]
            if verb == "schema":
                self._schema = CustomSchema(step["schema"])
            elif verb == "get":
                self._check_read(answer)
            elif step.get("managed"):
                self._manage(step, answer)
            elif verb in ("create", "update"):
                try:
                    self._write(step, answer)
                except AssertionError as error:
                    raise AssertionError(f"step {index}: {step}\n{answer}\n{error}") from None

    def _read(self) -> dict[str, Any]:
        document = copy.deepcopy(self._live)
        assert document is not None
        self._schema.read(document)
        return document

    def _check_read(self, answer: dict[str, Any]) -> None:
        assert _bare(self._read()) == _bare(answer["object"])

    def _write(self, step: dict[str, Any], answer: dict[str, Any]) -> None:
        document = copy.deepcopy(cases.manifest(self._name, self._key, step["object"]))
        how = step.get("validation", "Strict")
        try:
            unknown = self._schema.coerce(document, tells_unknown=True)
        except ValueError as error:
            self._check_refusal(400, str(error), answer)
            return
        texts = [f'unknown field "{one}"' for one in unknown]
        if unknown and how == "Strict":
            assert answer["code"] == 400, texts
            assert answer["message"].endswith("strict decoding error: " + ", ".join(texts)), (answer["message"], texts)
            return
        assert answer["code"] != 400
        self._schema.default(document)
        old = self._read() if self._live is not None else None
        warnings: list[str] = []
        found = self._judge(step, document, old, warnings)
        assert _told(found) == _recorded(answer)
        assert bool(found) == (answer["code"] >= 300)
        if not found:
            assert _bare(document) == _bare(answer["object"])
            self._live = copy.deepcopy(document)
        recorded = [one for one in answer.get("warnings", ()) if not one.startswith("metadata.finalizers")]
        assert sorted(recorded) == sorted([*texts, *warnings])

    def _check_refusal(
        self, code: int, message: str, answer: dict[str, Any], causes: list[Cause] | None = None
    ) -> None:
        assert code == answer["code"]
        assert message in answer["message"]
        assert _told(causes or []) == _recorded(answer)

    def _manage(self, step: dict[str, Any], answer: dict[str, Any]) -> None:
        """An apply, or an update with managed fields."""
        name = self._name
        document = copy.deepcopy(cases.manifest(name, self._key, step["object"]))
        kind = cases.kind_of(name)
        manager = managers.FieldManager(
            self._schema.merging, f"{cases.GROUP}/v1", kind, "", resets.of_custom(False, "")
        )
        old = self._read() if self._live is not None else None
        try:
            if step["verb"] == "apply":
                made = manager.apply(
                    old, document, step["manager"], "2026-01-01T00:00:00Z", force=bool(step.get("force"))
                )
            else:
                self._schema.coerce(document)
                self._schema.default(document)
                document["metadata"]["uid"] = "a"
                assert old is not None
                entries = manager.update(
                    {**old, "metadata": {**old["metadata"], "uid": "a"}}, document, step["manager"], ""
                )
                made = {**document, "metadata": {**document["metadata"], "managedFields": entries}}
        except errors.ApiError as error:
            self._check_refusal(error.code, error.message, answer, list(error.causes))
            return
        self._schema.coerce(made)
        self._schema.default(made)
        found = self._judge(step, made, old, [])
        assert _told(found) == _recorded(answer)
        if found:
            return
        assert _bare(made) == _bare(answer["object"])
        assert _entries(made) == _entries(answer["object"])
        self._live = made

    def _judge(
        self, step: dict[str, Any], document: dict[str, Any], old: dict[str, Any] | None, warnings: list[str]
    ) -> list[Cause]:
        found: list[Cause] = []
        scale = self._subresources.get("scale")
        if old is None:
            message, _ = convert.partial_json(meta_v1_pb2.ObjectMeta, document["metadata"])
            object_metadata.check_create(message, False, object_metadata.OF_ANY_KIND, names.dns_subdomain, found)
            if "status" in self._subresources:
                document.pop("status", None)
            self._schema.check_new(document, found, scale=scale)
        elif step.get("path") == "/status":
            whole = copy.deepcopy(old)
            whole.pop("status", None)
            if "status" in document:
                whole["status"] = document["status"]
            document.clear()
            document.update(whole)
            self._schema.check_status(document, old, found, scale=scale, warnings=warnings)
        else:
            if "status" in self._subresources:
                document.pop("status", None)
                if "status" in old:
                    document["status"] = old["status"]
            self._schema.check_update(document, old, found, scale=scale, warnings=warnings)
        return found


def _bare(document: dict[str, Any]) -> dict[str, Any]:
    """Without what the server sets."""
    found = json.loads(problems.as_json(document))
    for name in ("generation", "creationTimestamp", "uid", "resourceVersion", "managedFields"):
        found["metadata"].pop(name, None)
    return dict(found)


def _entries(document: dict[str, Any]) -> list[Any]:
    """Managed fields without their times."""
    found = [
        {name: value for name, value in one.items() if name != "time"} for one in document["metadata"]["managedFields"]
    ]
    return sorted(found, key=lambda one: one["manager"])
