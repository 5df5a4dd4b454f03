"""What a cluster of ``kemu up`` has beside nodes."""

from __future__ import annotations

import fnmatch

import pytest

from kemu.lab.scenario.format.keys import controller_keys
from kemu.lab.up import bootstrap_objects, clusters
from kemu.lab.up.clusters import MISSING_IMAGES


def test_all_controllers_of_a_cluster_run_but_those_of_a_cloud() -> None:
    found = clusters.of_nodes(1).controllers
    for name in ("endpoints", "endpointslice", "endpointslice-mirroring", "horizontal-pod-autoscaler"):
        assert name in found
    assert controller_keys.SERVICE_LB not in found
    settings = clusters.with_controller({}, controller_keys.SERVICE_LB)
    assert [*found, controller_keys.SERVICE_LB] == settings["controllers"]
    assert controller_keys.SERVICE_LB in clusters.of_nodes(1, settings).controllers


def test_a_default_class_makes_volumes_unless_there_are_others() -> None:
    (found,) = clusters.furnishings(clusters.of_nodes(1))
    assert found.metadata.annotations["storageclass.kubernetes.io/is-default-class"] == "true"
    assert found == bootstrap_objects.default_class()
    own = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "own"}, "provisioner": "x"}
    assert clusters.furnishings(clusters.of_nodes(1, {"manifests": [own]})) == []
    assert clusters.furnishings(clusters.of_nodes(1, {"controllers": []})) == []


def test_pods_wait_for_what_they_name_unless_it_is_lenient() -> None:
    strict = clusters.of_nodes(1).references
    assert strict is not None
    assert (strict.contents, strict.missing_images) == ("strict", list(MISSING_IMAGES))
    lenient = clusters.of_nodes(1, {"references": {}}).references
    assert lenient is not None
    assert (lenient.contents, lenient.missing_images) == ("lenient", [])


@pytest.mark.parametrize(
    ("image", "is_missing"),
    [
        ("nginx", False),
        ("registry.k8s.io/pause:3.9", False),
        ("registry.invalid/x:1", True),
        ("invalid.registry.k8s.io/invalid/alpine:3.1", True),
        ("foo:non-existent", True),
        ("webserver:404", True),
    ],
)
def test_which_images_no_registry_has(image: str, is_missing: bool) -> None:
    assert any(fnmatch.fnmatchcase(image, pattern) for pattern in MISSING_IMAGES) == is_missing
