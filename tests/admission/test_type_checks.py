"""What the status of ValidatingAdmissionPolicies says of the types in their expressions is what Kubernetes' controller
says (:mod:`tests.admission.type_checks`)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes
import pytest

from kemu.lab.up import embedded
from tests.admission import type_checks

REAL: list[Any] = json.loads(type_checks.FILE.read_text())


@pytest.fixture(scope="module")
def statuses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Any]]:
    definitions = "apiextensions.k8s.io", "v1", "customresourcedefinitions"
    policies = "admissionregistration.k8s.io", "v1", "validatingadmissionpolicies"
    folder: Path = tmp_path_factory.mktemp("types") / "run"
    with embedded.up(nodes=1, folder=folder) as cluster:
        client = kubernetes.config.new_client_from_config(str(cluster.kubeconfig))
        api = kubernetes.client.CustomObjectsApi(client)
        api.create_cluster_custom_object(*definitions, body=type_checks.DEFINITION)
        cluster.step(seconds=3)
        numbers = range(len(type_checks.CASES))
        for number in numbers:
            api.create_cluster_custom_object(*policies, body=type_checks.policy(number))
        cluster.step(seconds=3)
        yield [type_checks.told(api.get_cluster_custom_object(*policies, name=f"types-{number}")) for number in numbers]


def plain(status: Any) -> Any:
    """Types of kinds have the time in their names."""
    return json.loads(re.sub(r"(?<=Pod|ler)\d+(?=\.spec)", "…", json.dumps(status)))


@pytest.mark.parametrize("number", range(len(type_checks.CASES)))
def test_statuses_are_those_of_a_real_cluster(statuses: list[Any], number: int) -> None:
    assert plain(statuses[number]) == plain(REAL[number])
