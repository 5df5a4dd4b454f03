"""Whether what a pod names has to be there: ConfigMaps, Secrets, images."""

from __future__ import annotations

from dataclasses import dataclass

from kemu.emulated.settings.declared import setting
from kemu.emulated.settings.shapes import Choice, ListOf, Text

LENIENT, STRICT = "lenient", "strict"


@dataclass(frozen=True, kw_only=True)
class References:
    """What kubelets make of names."""

    contents: str = setting(
        Choice((LENIENT, STRICT)),
        "ConfigMaps and Secrets: strict: containers wait until they are there, as in Kubernetes; lenient: they are "
        "taken to exist. {default} by default.",
        LENIENT,
    )
    missing_images: list[str] = setting(
        ListOf(Text()), "Images that no registry has, by name; * stands for any text. None by default.", []
    )
