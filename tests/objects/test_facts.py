"""The recorded table of Kubernetes' types: it agrees with kemu's messages, and a wrong fact shows."""

import importlib
import pkgutil
from collections.abc import Iterator
from importlib import resources

import pytest
from google.protobuf.descriptor import Descriptor

from kemu.emulated.objects.conversion import descriptors, go_values
from kemu.emulated.objects.facts import go_types
from kemu.emulated.objects.managed_fields import schemas
from kemu.messages import k8s
from kemu.messages.k8s import apps_v1_pb2


def _messages() -> Iterator[Descriptor]:
    for module in pkgutil.iter_modules(k8s.__path__):
        if module.name.endswith("_pb2"):
            found = importlib.import_module(f"kemu.messages.k8s.{module.name}").DESCRIPTOR
            yield from found.message_types_by_name.values()


def _disagreements() -> list[str]:
    """Fields of messages that the table lacks, or says to be one where they are many."""
    found = []
    for message in _messages():
        struct = message.full_name.removeprefix("kemu.k8s.")
        fields = {one.json or one.type.rpartition(".")[2]: one.type for one in go_types.fields_of(struct) or ()}
        for field in message.fields if fields else ():
            name = field.message_type.name if descriptors.is_inline(field) and field.message_type else field.json_name
            go = fields.get(name)
            if go is None:
                found.append(f"{struct}.{name} is missing")
            elif descriptors.map_value(field) is not None:
                found += [] if go_types.map_types(go) else [f"{struct}.{name} is no map"]
            elif field.is_repeated and go_types.element_type(go) is None:
                found.append(f"{struct}.{name} is no list")
    return found


def test_the_table_has_every_field_of_the_messages() -> None:
    assert _disagreements() == []


def test_enums_may_have_spaces() -> None:
    assert "cert sign" in go_types.values("certificates.v1.KeyUsage")


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """A function that replaces a line of the table by a wrong one."""
    caches = (go_types._table, go_types.fields_of, go_values._plan, schemas._resolved, schemas.find_type)

    def plant(right: str, wrong: str) -> None:
        text = resources.files("kemu.emulated.objects.facts").joinpath("facts.txt").read_text()
        assert right in text

        class Folder:
            def joinpath(self, name: str) -> "Folder":
                return self

            def read_text(self) -> str:
                return text.replace(right, wrong)

        monkeypatch.setattr(resources, "files", lambda package: Folder())
        for cached in caches:
            cached.cache_clear()

    yield plant
    monkeypatch.undo()
    for cached in caches:
        cached.cache_clear()


def test_a_wrong_name_shows(planted) -> None:
    planted("\tprogressDeadlineSeconds *int32", "\tprogressDeadline *int32")
    assert _disagreements() == ["apps.v1.DeploymentSpec.progressDeadlineSeconds is missing"]


def test_a_lost_pointer_shows(planted) -> None:
    deployment = apps_v1_pb2.DeploymentSpec(replicas=0)
    go_values.trim(deployment)
    assert deployment.HasField("replicas")
    planted("struct apps.v1.DeploymentSpec\n\treplicas *int32", "struct apps.v1.DeploymentSpec\n\treplicas int32")
    go_values.trim(deployment)
    assert not deployment.HasField("replicas")


def test_lost_keys_of_a_list_show(planted) -> None:
    assert schemas.resolve(schemas.field_type("core.v1.PodSpec", "containers")).keys == ("name",)
    planted("\tcontainers []core.v1.Container always list=name", "\tcontainers []core.v1.Container always")
    assert schemas.resolve(schemas.field_type("core.v1.PodSpec", "containers")).is_atomic
