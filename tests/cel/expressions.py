"""Cases that try all functions, operators and macros with many operands: ``python -m tests.cel.expressions >
cases.jsonl``.
"""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
VALUES = [
    "1", "-7", "9223372036854775807", "-9223372036854775808", "0", "3u", "18446744073709551615u", "0u", "2.5",
    "-0.0", "1e300",
    "3.0", "double('NaN')", "double('Infinity')", "'abc'", "''", "'日本'", "b'abc'", "b'\\xff'", "true", "false",
    "null",
    "[1, 2]", "[]", "['a']", "{'a': 1}", "{}", "{1: 'x', 2: 'y'}", "duration('1h30m')", "duration('-1.5s')",
    "timestamp('2024-02-29T12:30:45.123456789Z')", "timestamp('2024-02-29T12:30:45+02:00')", "int", "type(1.0)",
    "optional.of(1)", "optional.none()", "quantity('1Gi')", "ip('10.0.0.1')", "cidr('10.0.0.0/8')", "url('http://a.b/c')",
    "semver('1.2.3')", "format.dns1123Label()",
]  # fmt: skip
OPERATORS = ["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "in", "&&", "||"]
CONVERSIONS = ["int", "uint", "double", "string", "bytes", "bool", "duration", "timestamp", "type", "dyn", "size"]
TEXTS = [
    "''", "'hello'", "'héllo wörld'", "'a,b,,c'", "' \\t x\\u00a0 '", "'日本語'", "'ABCxyzÀ'", "'a'", "'%'",
    "'\\U0001f600z'",
]  # fmt: skip
CONVERTIBLE = [
    "'12'", "'-12'", "'+12'", "' 12'", "'0x1f'", "'1_000'", "'99999999999999999999'", "'1.5'", "'1e3'", "'.5'",
    "'NaN'", "'inf'",
    "'Infinity'", "'-Inf'", "'true'", "'T'", "'yes'", "'1h'", "'1h1m1s1ms1us1ns'", "'1.5h'", "'-1s'", "'0'", "'5'",
    "'1d'", "'µs'",
    "'1µs'", "'.5s'", "'9223372036854775807ns'", "'9223372036854775808ns'", "'-9223372036854775808ns'",
    "'2024-01-01T00:00:00Z'",
    "'2024-01-01T00:00:00.5+01:00'", "'2024-13-01T00:00:00Z'", "'2024-01-01'", "'0001-01-01T00:00:00Z'",
    "'0000-01-01T00:00:00Z'",
    "'9999-12-31T23:59:59.999999999Z'", "'2024-01-01T24:00:00Z'", "'2024-02-30T00:00:00Z'", "'2024-01-01t00:00:00z'",
    "'2024-01-01T00:00:00-00:00'", "'2024-01-01T00:00:60Z'", "253402300799", "253402300800", "-62135596800",
    "-62135596801",
    "9.3e18", "-9.3e18", "1.8e19", "1.9e19", "-0.5", "1.9", "-1.9", "123456789.0", "1000000.0", "0.00001", "0.0001",
    "100000.0",
]  # fmt: skip
PATTERNS = [
    "'a'",
    "'^a.*'",
    "'[0-9]+'",
    "'(?i)HELLO'",
    "'l+'",
    "''",
    "'[a'",
    "'(a'",
    "'a**'",
    "'\\\\d'",
    "'(?=a)'",
    "'x*'",
    "'\\\\pL+'",
]
ZONES = [
    "'UTC'",
    "'America/New_York'",
    "'+02:00'",
    "'-02:30'",
    "'02:30'",
    "'Nowhere/None'",
    "''",
    "'Asia/Kolkata'",
    "'a:b'",
    "'1:'",
]
ADDRESSES = [
    "10.0.0.1", "10.0.0.256", "10.0.0", "10.0.0.0.1", "10..0.1", "010.0.0.1", "a.b.c.d", "1.2.3.4 ", "", "::1", "::",
    "fe80::1",
    "fe80::1%eth0", "2001:db8::1", "2001:DB8::1", "2001:0db8:0:0:0:0:0:1", "::ffff:1.2.3.4", "1:2:3:4:5:6:7",
    "1:2:3:4:5:6:7:8:9",
    "12345::", ":::", "1::2::3", "g::1", "::1.2.3", "1:2:3:4:5:6:7:1.2.3.4", "127.0.0.1", "0.0.0.0", "224.0.0.1",
    "169.254.1.1",
    "255.255.255.255", "ff02::1", "ff0e::1", "192.168.1.1", "1:", "%", "::%",
]  # fmt: skip
NETWORKS = [
    "10.0.0.0/8", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/08", "10.0.0.0", "10.0.0.0/", "::/0",
    "2001:db8::/32",
    "::ffff:1.2.3.4/96", "fe80::1%a/64", "x/8", "0.0.0.0/0", "192.168.0.0/24", "2001:db8::/129", "10.0.0.0/a",
    "10.1.0.0/16",
]  # fmt: skip
URLS = [
    "http://example.com", "https://user:pa%20ss@example.com:80/path?a=b&a=c&d#frag", "/absolute/path",
    "relative/path", "",
    "http://[::1]:80/", "http://[::1/", "http://a b.com/", "mailto:x@y", "http://example.com/%zz", "http://example.com:8a/",
    "*", "http:///path", "//host/path", "http://example.com/a b", "http://example.com/ä?q=ü+x",
    "HTTP://Example.COM/", ":foo",
    "http://example.com?", "http://example.com/a%2Fb", "http://example.com:", "http://1.2.3.4:8080", "http://ex%41mple.com/",
    "http://[fe80::1%25en0]/", "file:///etc", "http://a/b;c?d;e=f&g=%zz&h=1", "a:b:c", "http://user@/x", "http://\\x7f/",
]  # fmt: skip
QUANTITIES = [
    "1", "1Gi", "1.5Gi", "100m", "0.5", "1e3", "1E", "1Ei", "-5", "1k", "1K", "10Mo", "", "abc", "1.2.3", "0",
    "1000m", "1000",
    "9223372036854775807", "9223372036854775808", "1n", "0.1n", "10Ki", "1.0", "+3", "5e-1", "1e30", " 1", ".5",
    "5.", "-0", "12u",
]  # fmt: skip
VERSIONS = [
    "1.2.3", "v1.2.3", "1.2", "01.2.3", "1.2.3-alpha.1", "1.2.3-alpha.01", "1.2.3+build.5", "1.2.3-", "1.2.3+", "",
    "1.2.3.4", "a.b.c",
    "1.2.3-rc1+b", "v1", "1.0.0-alpha", "1.0.0-alpha.beta", "99999999999999999999.0.0", "1.2.03", "v01.02.3-x",
    "1.-2.3", "1.2.3-a..b",
]  # fmt: skip
FORMATS = [
    "dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName", "dns1123LabelPrefix", "dns1123SubdomainPrefix",
    "dns1035LabelPrefix", "labelValue", "uri", "uuid", "byte", "date", "datetime",
]  # fmt: skip
FORMATTED = [
    "a", "", "-", "a-", "A", "a.b", "a/b", "x" * 64, "1a", "a_b", "http://x/y",
    "123e4567-e89b-12d3-a456-426614174000", "aGk=", "aGk",
    "2024-02-29", "2023-02-29", "2024-01-01T00:00:00Z", "2024-01-01T25:00:00Z", "example.com/name", "/name", "a.-b",
]  # fmt: skip


def _fixed() -> Iterator[str]:
    for function, value in itertools.product(CONVERSIONS, [*VALUES, *CONVERTIBLE]):
        yield f"{function}({value})"
        if function in ("int", "double", "string", "timestamp", "size"):
            yield f"{function}(dyn({value}))"
    for text, other in itertools.product(TEXTS, ["''", "'l'", "','", "'本'", "'zzz'"]):
        for function in ("contains", "startsWith", "endsWith", "indexOf", "lastIndexOf", "split"):
            yield f"{text}.{function}({other})"
        yield f"{text}.replace({other}, 'xy')"
    for text, index in itertools.product(TEXTS, (-1, 0, 1, 2, 5, 100)):
        yield f"{text}.charAt({index})"
        yield f"{text}.substring({index})"
        yield f"{text}.substring(1, {index})"
        yield f"{text}.indexOf('l', {index})"
        yield f"{text}.lastIndexOf('l', {index})"
        yield f"{text}.split('', {index})"
        yield f"{text}.split(',', {index})"
        yield f"{text}.replace('l', '', {index})"
        yield f"{text}.replace('', '-', {index})"
    for text in TEXTS:
        for function in ("lowerAscii", "upperAscii", "trim", "size"):
            yield f"{text}.{function}()"
        yield f"strings.quote({text})"
        yield f"jsonpatch.escapeKey({text} + '~/x')"
        yield f"[{text}, 'x'].join({text})"
        yield f"[{text}, 'x'].join()"
    for text, pattern in itertools.product(["'hello'", "'abc123def45'", "''", "'aab'", "'日本1'"], PATTERNS):
        yield f"{text}.matches({pattern})"
        yield f"matches({text}, {pattern})"
        yield f"{text}.find({pattern})"
        yield f"{text}.findAll({pattern})"
        yield f"{text}.findAll({pattern}, 2)"
        yield f"{text}.matches(dyn({pattern}))"
        yield f"{text}.find(dyn({pattern}))"
    moments = ["timestamp('2024-02-29T23:30:45.123456789Z')", "timestamp('1969-12-31T23:59:59-05:00')", "timestamp(0)"]
    parts = [
        "FullYear",
        "Month",
        "DayOfYear",
        "DayOfMonth",
        "Date",
        "DayOfWeek",
        "Hours",
        "Minutes",
        "Seconds",
        "Milliseconds",
    ]
    for moment, part in itertools.product(moments, parts):
        yield f"{moment}.get{part}()"
        for zone in ZONES:
            yield f"{moment}.get{part}({zone})"
    for span, part in itertools.product(
        ["'1h30m15.5s'", "'-90m'", "'0s'"], ["Hours", "Minutes", "Seconds", "Milliseconds"]
    ):
        yield f"duration({span}).get{part}()"
    for text in ADDRESSES:
        yield f"ip('{text}')"
        yield f"isIP('{text}')"
        yield f"ip.isCanonical('{text}')"
        for function in (
            "family",
            "isUnspecified",
            "isLoopback",
            "isLinkLocalMulticast",
            "isLinkLocalUnicast",
            "isGlobalUnicast",
        ):
            yield f"ip('{text}').{function}()"
        yield f"cidr('10.0.0.0/8').containsIP('{text}')"
        yield f"cidr('2001:db8::/32').containsIP(dyn('{text}'))"
        yield f"string(ip('{text}'))"
    for text in NETWORKS:
        yield f"cidr('{text}')"
        yield f"isCIDR('{text}')"
        yield f"cidr('10.0.0.0/8').containsCIDR('{text}')"
        yield f"cidr('{text}').containsCIDR(cidr('10.1.0.0/16'))"
        yield f"cidr('{text}').prefixLength() + cidr('{text}').ip().family()"
        yield f"string(cidr('{text}').masked())"
        yield f"cidr('{text}') == cidr('10.0.0.0/8')"
        yield f"cidr('{text}').containsIP(ip('10.1.2.3'))"
    for text in URLS:
        yield f"url('{text}')"
        yield f"isURL('{text}')"
        for function in ("Scheme", "Host", "Hostname", "Port", "EscapedPath", "Query"):
            yield f"url('{text}').get{function}()"
        yield f"url('{text}') == url('http://example.com')"
    for text in QUANTITIES:
        yield f"isQuantity('{text}')"
        for function in ("isInteger", "asInteger", "asApproximateFloat"):
            yield f"quantity('{text}').{function}()"
        yield f"sign(quantity('{text}'))"
        for other in ("'1Gi'", "'-1'", "'100m'"):
            yield f"quantity('{text}').add(quantity({other})).asApproximateFloat()"
            yield f"quantity('{text}').compareTo(quantity({other}))"
            yield f"quantity('{text}').sub(quantity({other})).isInteger()"
        yield f"quantity('{text}').add(5).asInteger()"
        yield f"quantity('{text}').sub(5) == quantity('{text}')"
        yield f"quantity('{text}') == quantity('1')"
        yield f"quantity('1000m').isLessThan(quantity('{text}')) || quantity('{text}').isGreaterThan(quantity('1'))"
    for text in VERSIONS:
        for flag in ("", ", true", ", false"):
            yield f"semver('{text}'{flag})"
            yield f"isSemver('{text}'{flag})"
        for other in ("1.2.3", "1.2.3-alpha.2", "1.0.0-alpha.1"):
            yield f"semver('{text}').compareTo(semver('{other}'))"
            given = f"semver('{text}', true)"
            yield f"{given}.isLessThan(semver('{other}')) == semver('{other}').isGreaterThan({given})"
        given = f"semver('{text}', true)"
        yield f"{given}.major() + {given}.minor() * 10 + {given}.patch() * 100"
        yield f"semver('{text}') == semver('1.2.3+x')"
    for name, text in itertools.product(FORMATS, FORMATTED):
        yield f"format.{name}().validate('{text}')"
    for name in [*FORMATS, "none"]:
        yield f"format.named('{name}').hasValue()"
        yield f"format.named('{name}').value() == format.{name if name != 'none' else 'uri'}()"
    for value in VALUES:
        for function in (
            "[%s]",
            "{'k': %s}",
            "optional.of(%s)",
            "optional.ofNonZeroValue(%s)",
            "-(%s)",
            "!(%s)",
            "[%s, %s]",
            "{%s: 1}",
        ):
            yield function.replace("%s", value)
            yield function.replace("%s", f"dyn({value})")
        yield f"'%s'.format([{value}])"
        yield f"'%s'.format([[{value}]])"
        yield f"'%s'.format([dyn({value})])"
        yield f"'%s'.format([{{'k': dyn({value})}}])"
        for clause in "dfebxXo":
            yield f"'%{clause}'.format([dyn({value})])"
        yield f"'%d'.format([{value}])"
        yield f"'%.2f'.format([{value}])"
        yield f"dyn({value}).a"
        yield f"dyn({value})[0]"
        yield f"dyn({value})['a']"
        yield f"has(dyn({value}).a)"
        yield f"dyn({value}).?a"
        yield f"dyn({value})[?0]"
        yield f"dyn({value}).all(x, true)"
        yield f"dyn({value}).map(x, x)"
        yield f"dyn({value}).exists(i, v, false)"
        yield f"{value} ? 1 : 2"
        yield f"dyn({value}) ? 1 : 2"
        yield f"[1, 2][dyn({value})]"
        yield f"{{'a': 1, 'b': 2}}[dyn({value})]"
        yield f"{{1: 'a'}}[dyn({value})]"
        yield f"dyn({value}) in [1, 'a', 2.5]"
        yield f"dyn({value}) in {{1: 1}}"
        yield f"[1, 2].indexOf(dyn({value}))"
        yield f"[{value}, {value}].distinct()"
        yield f"[dyn({value})].sum()"
        yield f"[dyn({value}), dyn({value})].max()"
        yield f"[dyn({value}), dyn(1)].isSorted()"
        yield f"[{value}].sort()"
        yield f"sets.contains([{value}], [dyn({value})])"
        yield f"type({value}) == type(1)"


DYNAMIC = {
    "a": {"b": {"c": "d"}},
    "l": [1, 2, 3],
    "i": 1,
    "key": "s",
    "m": {"p": 1, "q": 2},
    "s": "hello",
    "f": 1.5,
    "n": None,
    "t": True,
    "strs": ["abc", "b"],
}
ALL_LIBRARIES = ["bindings", "jsonpatch", "mutation", "authorizer"]

TYPED = {
    "type": "object",
    "properties": {
        "s": {"type": "string", "maxLength": 10},
        "long": {"type": "string"},
        "e": {"type": "string", "enum": ["a", "bcd"]},
        "i": {"type": "integer"},
        "f": {"type": "number"},
        "b": {"type": "boolean"},
        "time": {"type": "string", "format": "date-time"},
        "date": {"type": "string", "format": "date"},
        "span": {"type": "string", "format": "duration"},
        "data": {"type": "string", "format": "byte"},
        "ios": {"x-kubernetes-int-or-string": True},
        "list": {"type": "array", "maxItems": 5, "items": {"type": "string", "maxLength": 3}},
        "ints": {"type": "array", "items": {"type": "integer"}},
        "set": {"type": "array", "x-kubernetes-list-type": "set", "maxItems": 4, "items": {"type": "string"}},
        "map": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "maxItems": 10,
            "items": {
                "type": "object",
                "required": ["k"],
                "properties": {"k": {"type": "string"}, "v": {"type": "integer"}},
            },
        },
        "labels": {"type": "object", "maxProperties": 3, "additionalProperties": {"type": "string", "maxLength": 7}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "nested": {"type": "object", "properties": {"x": {"type": "object", "properties": {"y": {"type": "integer"}}}}},
        "nullable": {"type": "string", "nullable": True},
        "namespace": {"type": "string"},
        "a-b.c/d": {"type": "integer"},
        "__u": {"type": "integer"},
        "embedded": {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
        "2d": {"type": "integer"},
    },
}
DOCUMENT: dict[str, Any] = {
    "s": "hello", "long": "loooong", "e": "bcd", "i": 5, "f": 2, "b": True, "time": "2024-01-01T10:00:00+02:00",
    "date": "2024-01-01",
    "span": "1h30m", "data": "aGVsbG8=", "ios": "50%", "list": ["a", "bb", "ccc"], "ints": [3, 1, 2], "set": ["x", "y"],
    "map": [{"k": "a", "v": 1}, {"k": "b", "v": 2}], "labels": {"app": "web", "tier": "db"}, "free": {"q": 1},
    "nested": {"x": {"y": 7}}, "nullable": None, "namespace": "ns", "a-b.c/d": 4, "__u": 9,
    "embedded": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}, "2d": 1,
}  # fmt: skip
OLD: dict[str, Any] = {
    **DOCUMENT,
    "s": "bye",
    "set": ["y", "x"],
    "map": [{"k": "b", "v": 2}, {"k": "a", "v": 1}],
    "i": 4,
    "ints": [1, 2],
}


def _case(expression: str, **more: Any) -> dict[str, Any]:
    return {"case": {"expression": expression, **more}}


def cases() -> Iterator[dict[str, Any]]:
    draw = random.Random("operators")
    for left, operator, right in itertools.product(VALUES, OPERATORS, VALUES):
        if draw.random() < 0.06:
            yield _case(f"{left} {operator} {right}", variables={})
        elif draw.random() < 0.1:
            yield _case(f"dyn({left}) {operator} dyn({right})", variables={})
    for expression in _fixed():
        yield _case(expression, variables={}, libraries=["jsonpatch"])
    for line in (DATA / "expressions.txt").read_text().splitlines():
        yield _case(line, variables={"x": DYNAMIC}, libraries=ALL_LIBRARIES)
    for rule in (DATA / "rules.txt").read_text().splitlines():
        yield _case(rule, schema=TYPED, self=DOCUMENT, oldSelf=OLD)
    for rule in (
        "oldSelf.hasValue() && self == oldSelf.value()",
        "oldSelf.optMap(o, o.i <= self.i).orValue(true)",
        "oldSelf.?s",
    ):
        for old in (OLD, None):
            yield _case(rule, schema=TYPED, self=DOCUMENT, oldSelf=old, optionalOldSelf=True)
    yield from _limits()


def _limits() -> Iterator[dict[str, Any]]:
    deep = ["(" * depth + "1" + ")" * depth for depth in (10, 240, 248, 249, 250, 251, 300)] + [
        "[" * depth + "]" * depth for depth in (240, 250, 260)
    ]
    deep += ["1" + " + 1" * count for count in (10, 240, 247, 248, 249, 250, 251, 300)]
    deep += ["x" + ".a" * count for count in (10, 240, 247, 248, 249, 250, 251, 300)]
    deep += [
        "true" + " && true" * 400,
        "!" * 300 + "true",
        "-" * 301 + "1",
        "true" + " ? true : false" * 1 + "",
        "x" + "[0]" * 251,
    ]
    deep += [
        "true ? 1 : " * 200 + "1",
        "true ? 1 : " * 260 + "1",
        "f(" * 260 + ")" * 260,
        "[1].map(x, " * 30 + "x" + ")" * 30,
    ]
    deep += [
        "'" + "a" * 5000 + "'.size()",
        "1 " * 300,
        "'" + "é" * 100_001 + "'",
        "a" + " == a" * 260,
        "1" + " * 1" * 200,
    ]
    for expression in deep:
        yield _case(expression, variables={"x": {"a": 1}})
    many = list(range(1000))
    for expression in (
        "x.all(a, x.all(b, a + b >= 0))",
        "x.map(a, x.map(b, x.map(c, a + b + c))).size() > 0",
        "x.exists(a, a == 999)",
        "x.map(a, string(a)).join(',').size()",
        "x.sort() == x",
        "x.filter(a, a % 2 == 0).size()",
        "lists.range(100).map(a, lists.range(100).map(b, a * b).sum()).sum()",
    ):
        yield _case(expression, variables={"x": many})
        yield _case(expression, variables={"x": many[:20]}, limit=1000)


if __name__ == "__main__":
    for line in cases():
        print(json.dumps(line, ensure_ascii=False, separators=(",", ":")))
