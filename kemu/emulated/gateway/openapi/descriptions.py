"""The sentences that describe types and fields.

Each file in ``texts`` holds the types of one package:

    PodSpec: What a pod is to be.
      nodeName: Node to which the pod is bound.

``shared.txt`` holds fields that mean the same wherever they stand.
"""

from __future__ import annotations

import re
from collections.abc import Set
from functools import lru_cache
from importlib import resources

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+|[A-Z]")


_PREFIXES = (
    "io.k8s.api.",
    "io.k8s.apiextensions-apiserver.pkg.apis.",
    "io.k8s.apimachinery.pkg.apis.",
    "io.k8s.apimachinery.pkg.",
    "io.k8s.kube-aggregator.pkg.apis.",
)


def short(name: str) -> str:
    """``core.v1.Pod`` of ``io.k8s.api.core.v1.Pod``, as :mod:`kemu.emulated.objects.managed_fields.schemas` names it,
    too."""
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name


def keys() -> Set[str]:
    """What there are sentences for: types, and fields with their types or with ``shared``."""
    return _texts().keys()


def of_type(name: str) -> str:
    """``name`` as ``core.v1.PodSpec``."""
    found = _texts().get(name)
    return found if found is not None else f"{_spoken(name.rpartition('.')[2]).capitalize()}."


def of_field(owner: str, field: str) -> str:
    """``owner`` as ``core.v1.PodSpec``."""
    texts = _texts()
    for key in (f"{owner}.{field}", f"shared.{field}"):
        if key in texts:
            return texts[key]
    return f"{_spoken(field).capitalize()}."


def _spoken(name: str) -> str:
    """``podDisruptionBudget`` as words."""
    return " ".join(word if word.isupper() and len(word) > 1 else word.lower() for word in _WORDS.findall(name))


@lru_cache(1)
def _texts() -> dict[str, str]:
    found: dict[str, str] = {}
    for file in resources.files("kemu.emulated.gateway.openapi.texts").iterdir():
        if not file.name.endswith(".txt"):
            continue
        package = file.name.removesuffix(".txt")
        owner = ""
        for line in file.read_text(encoding="utf-8").splitlines():
            name, _, text = line.strip().partition(": ")
            if package == "shared":
                found[f"shared.{name}"] = text
            elif line.startswith(" "):
                found[f"{package}.{owner}.{name}"] = text
            elif line:
                owner = name
                found[f"{package}.{owner}"] = text
    return found
