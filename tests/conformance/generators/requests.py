"""Sequences of HTTP requests, right and wrong: reads, watches, deletions, subresources, paths that nobody serves.

A case is about one kind, mostly: it makes some objects, then asks.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.conformance.generators import request_parts as parts
from tests.conformance.generators import request_paths as paths
from tests.conformance.generators import request_reads as reads
from tests.conformance.generators import request_writes as writes
from tests.conformance.generators.request_parts import Draw, Json

FAMILIES = ("requests",)


def case(family: str, seed: int, number: int) -> Json:
    draw = random.Random(f"{family} {seed} {number}")
    subject = parts.Subject(draw.choice(parts.OFTEN if draw.random() < 0.6 else parts.PLURALS))
    steps = [_creation(draw, subject, name) for name in parts.NAMES[: draw.randint(1, 3)]]
    if subject.namespaced and draw.random() < 0.3:
        steps.append(_creation(draw, subject, "a", parts.AWAY))
    for _ in range(draw.randint(6, 9)):
        about = subject if draw.random() < 0.85 else parts.Subject(draw.choice(parts.PLURALS))
        steps.append(draw.choices(_MAKERS, _WEIGHTS)[0](draw, about, len(steps)))
    return {"id": f"requests-s{seed}-{number:05}", "family": "requests", "steps": steps}


def _creation(draw: Draw, subject: parts.Subject, name: str, namespace: str = parts.HOME) -> Json:
    return parts.request("POST", subject.collection(namespace), body=subject.body(draw, name, namespace))


_MAKERS: tuple[Callable[[Draw, parts.Subject, int], Json], ...] = (
    reads.get, reads.list_, reads.pages_of_list, reads.watch, reads.delete, reads.delete_collection,
    writes.odd_write, writes.subresource, paths.wrong_method, paths.unknown_path, paths.discovery, paths.review,
)  # fmt: skip
_WEIGHTS = (12, 20, 4, 7, 14, 5, 14, 14, 5, 7, 6, 6)
