"""Patterns for pods and their containers: by owner, image, command and args.

In a pattern ``*`` stands for any text, ``?`` for any character and ``[ab]`` for one of these; it must match the whole.
"""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from kemu.messages.k8s import core_v1_pb2


@functools.lru_cache(1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    # Several stars in a row mean the same as one, and take much longer.
    return re.compile(fnmatch.translate(re.sub(r"\*+", "*", pattern)))


@dataclass(frozen=True, slots=True)
class Patterns:
    """None: anything."""

    owner: str | None = None
    """Kind and name of the controller, as ``Job/*``."""
    image: str | None = None
    """Without ``/`` it is about the last part of the name; without ``:`` not about the tag."""
    command: str | None = None
    args: str | None = None

    @property
    def is_of_containers(self) -> bool:
        return any(one is not None for one in (self.image, self.command, self.args))

    def match_pod(self, pod: core_v1_pb2.Pod) -> bool:
        if self.owner is None:
            return True
        owner = next((one for one in pod.metadata.ownerReferences if one.controller), None)
        return owner is not None and _compiled(self.owner).match(f"{owner.kind}/{owner.name}") is not None

    def match_container(self, container: core_v1_pb2.Container) -> bool:
        return (
            (self.image is None or _is_image(self.image, container.image))
            and (self.command is None or _are_words(self.command, container.command))
            and (self.args is None or _are_words(self.args, container.args))
        )


def _is_image(pattern: str, image: str) -> bool:
    name = image.partition("@")[0] if "@" not in pattern else image
    if "/" not in pattern:
        name = name.rpartition("/")[2]
    if ":" not in pattern.rpartition("/")[2]:
        head, slash, last = name.rpartition("/")
        name = head + slash + last.partition(":")[0]
    return _compiled(pattern).match(name) is not None


def _are_words(pattern: str, words: Sequence[str]) -> bool:
    return bool(words) and _compiled(pattern).match(" ".join(words)) is not None
