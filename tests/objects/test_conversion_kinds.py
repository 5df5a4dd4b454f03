"""Kinds with JSON forms of their own: maps of bytes, raw objects, inline unions."""

from __future__ import annotations

from typing import Any

import pytest

from kemu.emulated.objects.conversion import convert


@pytest.mark.parametrize(
    "manifest",
    [
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"x": "aGVsbG8="}},
        {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": {"name": "a"},
            "data": {"spec": {"x": 1}},
            "revision": 3,
        },
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": "a"},
            "spec": {"capacity": {"storage": "1Gi"}, "csi": {"driver": "x", "volumeHandle": "y"}},
        },
        {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "Ingress",
            "metadata": {"name": "a"},
            "spec": {
                "rules": [
                    {"host": "a", "http": {"paths": [{"path": "/", "backend": {"service": {"name": "w"}}}]}}
                ]
            },
        },
    ],
    ids=lambda manifest: manifest["kind"],
)  # fmt: skip
def test_a_manifest_comes_back_as_it_was(manifest: dict[str, Any]) -> None:
    assert convert.to_manifest(convert.from_manifest(manifest)) == manifest
