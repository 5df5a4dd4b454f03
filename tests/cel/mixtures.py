"""Cases mixed at random from parts: ``python -m tests.cel.mixtures --seed 1 --count 1000 > cases.jsonl``.

Parts have types and are put where such a type is wanted, or, now and then, where another one is.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.cel.expressions import DOCUMENT, DYNAMIC, OLD, TYPED

_PARTS = json.loads((Path(__file__).parent / "data/mixtures.json").read_text())
_ATOMS: dict[str, list[str]] = _PARTS["atoms"]
_RULES: dict[str, list[str]] = _PARTS["rules"]


class _Mixer:
    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.names = 0

    def part(self, kind: str, depth: int) -> str:
        if self.draw.random() < 0.03:
            kind = self.draw.choice(sorted(_ATOMS))
        if depth == 0 or self.draw.random() < 0.15:
            return self.draw.choice(_ATOMS[kind])
        rule = self.draw.choice(_RULES[kind])
        self.names += 2
        first, second = f"v{self.names}", f"v{self.names + 1}"
        result, at = "", 0
        rule = rule.replace("{v}", first).replace("{w}", second)
        while (start := rule.find("{", at)) >= 0:
            end = rule.index("}", start)
            inner = self.part(rule[start + 1 : end], depth - 1)
            plain = inner.replace(".", "").replace("'", "").isalnum()
            result += rule[at:start] + (inner if plain else f"({inner})")
            at = end + 1
        return (result + rule[at:]).replace("«", "{").replace("»", "}")


def cases(seed: int, count: int) -> Iterator[dict[str, Any]]:
    draw = random.Random(f"mixtures {seed}")
    for _ in range(count):
        expression = _Mixer(draw).part(draw.choice(sorted(_RULES)), draw.choice((1, 2, 2, 3, 3, 4)))
        case = {
            "expression": expression,
            "schema": TYPED,
            "self": DOCUMENT,
            "oldSelf": OLD,
            "variables": {"x": DYNAMIC},
        }
        yield {"case": {**case, "libraries": ["bindings"]}}


if __name__ == "__main__":
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--count", type=int, default=1000)
    given = arguments.parse_args()
    for line in cases(given.seed, given.count):
        print(json.dumps(line, ensure_ascii=False, separators=(",", ":")))
