"""deploy/ray-cluster.yaml is what the Ray cluster launcher takes, and holds nothing of anybody's."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from kemu.runtime.ray.driver.plans import DEFAULT_PLAN, DRIVER_CELL

FILE = Path(__file__).parents[2] / "deploy" / "ray-cluster.yaml"


@pytest.fixture(scope="module")
def schema() -> Any:
    # Found without an import of Ray, which takes longer than all tests here.
    spec = importlib.util.find_spec("ray")
    assert spec is not None
    assert spec.origin is not None
    return json.loads((Path(spec.origin).parent / "autoscaler" / "ray-schema.json").read_text())


@pytest.fixture
def config() -> Any:
    return yaml.safe_load(FILE.read_text())


def test_it_fits_rays_schema(config: Any, schema: Any) -> None:
    jsonschema.validate(config, schema)


def test_a_wrong_key_would_be_found(config: Any, schema: Any) -> None:
    with pytest.raises(jsonschema.ValidationError, match="max_wrokers"):
        jsonschema.validate({**config, "max_wrokers": 2}, schema)


def test_every_cell_has_a_place(config: Any) -> None:
    commands = "\n".join(config["head_start_ray_commands"] + config["worker_start_ray_commands"])
    offered = set()
    for resources in re.findall(r"--resources='([^']*)'", commands):
        offered |= set(json.loads(resources))
    assert offered == {f"kemu-{plan.name}" for plan in DEFAULT_PLAN if plan.name != DRIVER_CELL}


def test_all_workers_are_started(config: Any) -> None:
    assert config["max_workers"] == len(config["provider"]["worker_ips"])


def test_no_secret_no_address_and_no_path_of_a_machine() -> None:
    text = FILE.read_text()
    assert not re.search(r"(?i)credential|password|secret|token|access_key|private_key|\.pem", text)
    assert not re.search(r"\b\d{1,3}(\.\d{1,3}){3}\b", text)
    assert not re.search(r"(?<![\w~.])/(home|root|work|Users|mnt|opt)\b", text)
    assert all(host.endswith(".example") for host in re.findall(r"[\w-]+\.example\b|[\w-]+\.(?:com|net|org)\b", text))
