"""Kubeconfigs of tests."""

from __future__ import annotations

from pathlib import Path

import yaml


def write(path: Path, server: str, token: str, authority: Path | None = None, name: str = "test") -> Path:
    """A kubeconfig with one context: ``server`` with ``token``; ``authority`` holds the certificates to trust."""
    cluster: dict[str, object] = {"server": server}
    if authority is not None:
        cluster["certificate-authority"] = str(authority)
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": {"token": token}}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    path.write_text(yaml.safe_dump(document))
    return path
