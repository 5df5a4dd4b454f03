"""Cases mixed at random from parts: ``python -m tests.cel.mixtures --seed 1 --count 1000 > cases.jsonl``.

Parts have types and are put where such a type is wanted, or, now and then, where another one is.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from typing import Any

from tests.cel.expressions import DOCUMENT, DYNAMIC, OLD, TYPED

_ATOMS = {
    "int": ["1", "0", "-3", "7", "self.i", "oldSelf.i", "x.i", "self.nested.x.y", "self.ints[0]", "size(self.list)", "self.s.size()"],
    "str": ["'a'", "''", "'hello'", "self.s", "self.long", "self.e", "x.s", "self.list[1]", "self.labels.app", "x.a.b.c", "self.map[0].k"],
    "bool": ["true", "false", "self.b", "x.t", "has(self.nullable)", "has(self.labels.app)", "has(x.a.z)", "has(x.a.b.c)"],
    "dbl": ["1.5", "0.0", "self.f", "x.f", "-2.5"],
    "strs": ["self.list", "self.set", "['a', 'b']", "x.strs", "oldSelf.set", "self.s.split('')"],
    "ints": ["self.ints", "[1, 2, 3]", "x.l", "oldSelf.ints", "lists.range(4)"],
    "map": ["self.labels", "{'a': 'b'}", "{'app': 'web', 'tier': 'db'}", "x.m"],
    "opt": ["optional.of('z')", "optional.none()", "self.?s", "self.labels.?none", "self.labels[?'app']", "self.list[?9]", "x.?s"],
    "time": ["self.time", "timestamp('2024-05-01T00:00:00Z')", "self.date", "timestamp(x.i)"],
    "span": ["self.span", "duration('90s')", "duration(self.s)"],
    "objs": ["self.map", "oldSelf.map", "self.map.filter(m, m.v > 1)"],
    "any": ["x", "x.n", "self.ios", "dyn(1)", "dyn('q')", "null", "self.nested", "x.a", "self.data"],
}  # fmt: skip
_RULES = {
    "int": ["{int} + {int}", "{int} - {int}", "{int} * {int}", "{int} / {int}", "{int} % {int}", "-({int})", "{bool} ? {int} : {int}",
            "{ints}.sum()", "{ints}.max()", "{ints}.min()", "{strs}.indexOf({str})", "{str}.indexOf({str})", "size({strs})",
            "{map}.size()", "int({dbl})", "int({str})", "{time}.getHours()", "{span}.getMinutes()", "{ints}[{int}]", "{str}.lastIndexOf({str})",
            "{time}.getFullYear('+01:00')", "{objs}.map({v}, {v}.v).sum()", "{ints}.filter({v}, {v} > {int}).size()"],
    "str": ["{str} + {str}", "{bool} ? {str} : {str}", "{strs}.join({str})", "{str}.lowerAscii()", "{str}.upperAscii()", "string({int})",
            "{str}.substring({int})", "{str}.replace({str}, {str})", "{str}.trim()", "{opt}.orValue({str})", "'%s-%d'.format([{str}, {int}])",
            "string({dbl})", "{str}.charAt({int})", "{map}[{str}]", "{str}.find('[a-z]+')", "string({time})", "{strs}[{int}]", "'%s'.format([{map}])"],
    "bool": ["{bool} && {bool}", "{bool} || {bool}", "!({bool})", "{int} < {int}", "{int} == {dbl}", "{str} == {str}", "{str} in {strs}",
             "{str} in {map}", "{strs}.all({v}, {v}.size() > {int})", "{ints}.exists({v}, {v} == {int})", "{strs}.exists_one({v}, {v} == {str})",
             "{str}.startsWith({str})", "{str}.contains({str})", "{str}.matches('^[a-z]*$')", "{strs} == {strs}", "{map} == {map}",
             "{objs}.all({v}, {v}.v > {int} && {v}.k != {str})", "{time} < {time}", "{opt}.hasValue()", "{opt} == {opt}", "{any} == {any}",
             "{ints}.isSorted()", "{map}.all({v}, {w}, {v} != {w})", "{ints}.exists({v}, {w}, {v} < {w})", "sets.contains({strs}, {strs})",
             "isIP({str})", "cidr('10.0.0.0/8').containsIP({str})", "quantity({str}).isInteger()", "isQuantity({str})", "{objs} == {objs}",
             "{dbl} <= {int}", "{span} > {span}", "{bool} ? {bool} : {bool}", "type({any}) == type({any})", "{str} < {str}", "url({str}).getHost() != ''",
             "format.dns1123Label().validate({str}).hasValue()", "self == oldSelf", "{any} in {strs}", "{bool} == {bool}"],
    "dbl": ["{dbl} + {dbl}", "{dbl} / {dbl}", "double({int})", "{bool} ? {dbl} : {dbl}"],
    "strs": ["{strs} + {strs}", "{strs}.map({v}, {v} + {str})", "{strs}.filter({v}, {v} != {str})", "{str}.split({str})", "[{str}, {str}]",
             "{ints}.map({v}, string({v}))", "{map}.map({v}, {v})", "{strs}.distinct()", "{strs}.sort()", "{strs}.reverse()",
             "{objs}.map({v}, {v}.k)", "{bool} ? {strs} : {strs}", "{strs}.slice({int}, {int})", "{strs}.transformList({v}, {w}, {w})",
             "{strs}.sortBy({v}, {v}.size())", "[{str}, ?{opt}]", "{str}.findAll('[a-z]')", "[{strs}, {strs}].flatten()"],
    "ints": ["{ints} + {ints}", "{ints}.map({v}, {v} * {int})", "{ints}.filter({v}, {v} > {int})", "[{int}, {int}]", "{strs}.map({v}, {v}.size())",
             "{ints}.sort()", "{ints}.transformList({v}, {w}, {v} + {w})"],
    "map": ["{strs}.transformMapEntry({v}, {w}, «{w}: 'x'»)", "«{str}: {str}»", "{map}.transformMap({v}, {w}, {w})", "{bool} ? {map} : {map}",
            "«'k': {str}, ?'o': {opt}»"],
    "opt": ["optional.of({str})", "{opt}.or({opt})", "{opt}.optMap({v}, {v} + {str})", "{strs}[?{int}]", "{map}[?{str}]", "{strs}.first()",
            "{opt}.optFlatMap({v}, {map}[?{v}])", "optional.ofNonZeroValue({str})", "{bool} ? {opt} : {opt}"],
    "time": ["{time} + {span}", "{time} - {span}"],
    "span": ["{span} + {span}", "{time} - {time}"],
    "objs": ["{objs} + {objs}", "{objs}.filter({v}, {v}.v == {int})"],
    "any": ["dyn({str})", "dyn({int})", "{map}", "{strs}", "cel.bind({v}, {str}, {v} + {v})", "cel.bind({v}, {ints}, {v}.map({w}, {w} + 1))"],
}  # fmt: skip


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
