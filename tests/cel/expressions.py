"""Cases that try all functions, operators and macros with many operands: ``python -m tests.cel.expressions > cases.jsonl``."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from typing import Any

VALUES = [
    "1", "-7", "9223372036854775807", "-9223372036854775808", "0", "3u", "18446744073709551615u", "0u", "2.5", "-0.0", "1e300",
    "3.0", "double('NaN')", "double('Infinity')", "'abc'", "''", "'日本'", "b'abc'", "b'\\xff'", "true", "false", "null",
    "[1, 2]", "[]", "['a']", "{'a': 1}", "{}", "{1: 'x', 2: 'y'}", "duration('1h30m')", "duration('-1.5s')",
    "timestamp('2024-02-29T12:30:45.123456789Z')", "timestamp('2024-02-29T12:30:45+02:00')", "int", "type(1.0)",
    "optional.of(1)", "optional.none()", "quantity('1Gi')", "ip('10.0.0.1')", "cidr('10.0.0.0/8')", "url('http://a.b/c')",
    "semver('1.2.3')", "format.dns1123Label()",
]  # fmt: skip
OPERATORS = ["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "in", "&&", "||"]
CONVERSIONS = ["int", "uint", "double", "string", "bytes", "bool", "duration", "timestamp", "type", "dyn", "size"]
TEXTS = [
    "''", "'hello'", "'héllo wörld'", "'a,b,,c'", "' \\t x\\u00a0 '", "'日本語'", "'ABCxyzÀ'", "'a'", "'%'", "'\\U0001f600z'",
]  # fmt: skip
CONVERTIBLE = [
    "'12'", "'-12'", "'+12'", "' 12'", "'0x1f'", "'1_000'", "'99999999999999999999'", "'1.5'", "'1e3'", "'.5'", "'NaN'", "'inf'",
    "'Infinity'", "'-Inf'", "'true'", "'T'", "'yes'", "'1h'", "'1h1m1s1ms1us1ns'", "'1.5h'", "'-1s'", "'0'", "'5'", "'1d'", "'µs'",
    "'1µs'", "'.5s'", "'9223372036854775807ns'", "'9223372036854775808ns'", "'-9223372036854775808ns'", "'2024-01-01T00:00:00Z'",
    "'2024-01-01T00:00:00.5+01:00'", "'2024-13-01T00:00:00Z'", "'2024-01-01'", "'0001-01-01T00:00:00Z'", "'0000-01-01T00:00:00Z'",
    "'9999-12-31T23:59:59.999999999Z'", "'2024-01-01T24:00:00Z'", "'2024-02-30T00:00:00Z'", "'2024-01-01t00:00:00z'",
    "'2024-01-01T00:00:00-00:00'", "'2024-01-01T00:00:60Z'", "253402300799", "253402300800", "-62135596800", "-62135596801",
    "9.3e18", "-9.3e18", "1.8e19", "1.9e19", "-0.5", "1.9", "-1.9", "123456789.0", "1000000.0", "0.00001", "0.0001", "100000.0",
]  # fmt: skip
PATTERNS = ["'a'", "'^a.*'", "'[0-9]+'", "'(?i)HELLO'", "'l+'", "''", "'[a'", "'(a'", "'a**'", "'\\\\d'", "'(?=a)'", "'x*'", "'\\\\pL+'"]
ZONES = ["'UTC'", "'America/New_York'", "'+02:00'", "'-02:30'", "'02:30'", "'Nowhere/None'", "''", "'Asia/Kolkata'", "'a:b'", "'1:'"]
ADDRESSES = [
    "10.0.0.1", "10.0.0.256", "10.0.0", "10.0.0.0.1", "10..0.1", "010.0.0.1", "a.b.c.d", "1.2.3.4 ", "", "::1", "::", "fe80::1",
    "fe80::1%eth0", "2001:db8::1", "2001:DB8::1", "2001:0db8:0:0:0:0:0:1", "::ffff:1.2.3.4", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9",
    "12345::", ":::", "1::2::3", "g::1", "::1.2.3", "1:2:3:4:5:6:7:1.2.3.4", "127.0.0.1", "0.0.0.0", "224.0.0.1", "169.254.1.1",
    "255.255.255.255", "ff02::1", "ff0e::1", "192.168.1.1", "1:", "%", "::%",
]  # fmt: skip
NETWORKS = [
    "10.0.0.0/8", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/08", "10.0.0.0", "10.0.0.0/", "::/0", "2001:db8::/32",
    "::ffff:1.2.3.4/96", "fe80::1%a/64", "x/8", "0.0.0.0/0", "192.168.0.0/24", "2001:db8::/129", "10.0.0.0/a", "10.1.0.0/16",
]  # fmt: skip
URLS = [
    "http://example.com", "https://user:pa%20ss@example.com:80/path?a=b&a=c&d#frag", "/absolute/path", "relative/path", "",
    "http://[::1]:80/", "http://[::1/", "http://a b.com/", "mailto:x@y", "http://example.com/%zz", "http://example.com:8a/",
    "*", "http:///path", "//host/path", "http://example.com/a b", "http://example.com/ä?q=ü+x", "HTTP://Example.COM/", ":foo",
    "http://example.com?", "http://example.com/a%2Fb", "http://example.com:", "http://1.2.3.4:8080", "http://ex%41mple.com/",
    "http://[fe80::1%25en0]/", "file:///etc", "http://a/b;c?d;e=f&g=%zz&h=1", "a:b:c", "http://user@/x", "http://\\x7f/",
]  # fmt: skip
QUANTITIES = [
    "1", "1Gi", "1.5Gi", "100m", "0.5", "1e3", "1E", "1Ei", "-5", "1k", "1K", "10Mo", "", "abc", "1.2.3", "0", "1000m", "1000",
    "9223372036854775807", "9223372036854775808", "1n", "0.1n", "10Ki", "1.0", "+3", "5e-1", "1e30", " 1", ".5", "5.", "-0", "12u",
]  # fmt: skip
VERSIONS = [
    "1.2.3", "v1.2.3", "1.2", "01.2.3", "1.2.3-alpha.1", "1.2.3-alpha.01", "1.2.3+build.5", "1.2.3-", "1.2.3+", "", "1.2.3.4", "a.b.c",
    "1.2.3-rc1+b", "v1", "1.0.0-alpha", "1.0.0-alpha.beta", "99999999999999999999.0.0", "1.2.03", "v01.02.3-x", "1.-2.3", "1.2.3-a..b",
]  # fmt: skip
FORMATS = [
    "dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName", "dns1123LabelPrefix", "dns1123SubdomainPrefix",
    "dns1035LabelPrefix", "labelValue", "uri", "uuid", "byte", "date", "datetime",
]  # fmt: skip
FORMATTED = [
    "a", "", "-", "a-", "A", "a.b", "a/b", "x" * 64, "1a", "a_b", "http://x/y", "123e4567-e89b-12d3-a456-426614174000", "aGk=", "aGk",
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
    parts = ["FullYear", "Month", "DayOfYear", "DayOfMonth", "Date", "DayOfWeek", "Hours", "Minutes", "Seconds", "Milliseconds"]
    for moment, part in itertools.product(moments, parts):
        yield f"{moment}.get{part}()"
        for zone in ZONES:
            yield f"{moment}.get{part}({zone})"
    for span, part in itertools.product(["'1h30m15.5s'", "'-90m'", "'0s'"], ["Hours", "Minutes", "Seconds", "Milliseconds"]):
        yield f"duration({span}).get{part}()"
    for text in ADDRESSES:
        yield f"ip('{text}')"
        yield f"isIP('{text}')"
        yield f"ip.isCanonical('{text}')"
        for function in ("family", "isUnspecified", "isLoopback", "isLinkLocalMulticast", "isLinkLocalUnicast", "isGlobalUnicast"):
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
            yield f"semver('{text}', true).isLessThan(semver('{other}')) == semver('{other}').isGreaterThan(semver('{text}', true))"
        yield f"semver('{text}', true).major() + semver('{text}', true).minor() * 10 + semver('{text}', true).patch() * 100"
        yield f"semver('{text}') == semver('1.2.3+x')"
    for name, text in itertools.product(FORMATS, FORMATTED):
        yield f"format.{name}().validate('{text}')"
    for name in [*FORMATS, "none"]:
        yield f"format.named('{name}').hasValue()"
        yield f"format.named('{name}').value() == format.{name if name != 'none' else 'uri'}()"
    for value in VALUES:
        for function in ("[%s]", "{'k': %s}", "optional.of(%s)", "optional.ofNonZeroValue(%s)", "-(%s)", "!(%s)", "[%s, %s]", "{%s: 1}"):
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


OTHERS = """
[3, 1, 2].sort()
['b', 'a'].sort()
[true, false].sort()
[3u, 1u].sort()
[1, 2, 3].slice(1, 2)
[1, 2, 3].slice(2, 1)
[1, 2, 3].slice(-1, 1)
[1, 2, 3].slice(1, 9)
[[1], [2, [3]]].flatten()
[[1], [2]].flatten()
[[1, [2, [3, [4]]]]].flatten(2)
[1, 2].flatten(0)
[[1]].flatten(-1)
lists.range(5)
lists.range(0)
lists.range(-1)
lists.range(5).reverse()
[1, 2, 1, 3, 2].distinct()
[1, 1.0, 1u].distinct()
[dyn(1), dyn(1.0), dyn('a')].distinct()
['abc', 'b', 'cd'].sortBy(s, s.size())
[{'n': 2}, {'n': 1}].sortBy(x, x.n)
[3, 1, 2].sortBy(x, -x)
[3, 1].map(x, x).sortBy(y, y)
1.sortBy(x, x)
[].sortBy(x, x)
[1, 2, 3].sum()
[1u, 2u].sum()
[1.5, 2.5].sum()
[duration('1s'), duration('1m')].sum()
[].sum()
[1, 2, 3].min()
['b', 'a'].max()
[].max()
[].min()
[9223372036854775807, 1].sum()
[1, 3, 2].isSorted()
['a', 'b', 'b'].isSorted()
[timestamp(1), timestamp(0)].isSorted()
[1, 2, 3, 2].indexOf(2)
[1, 2, 3, 2].lastIndexOf(2)
[1, 2].lastIndexOf(5)
sets.contains([1, 2, 3], [1])
sets.contains([1], [1, 2])
sets.equivalent([1, 2], [2, 1, 1])
sets.intersects([1, 2], [3, 2])
sets.intersects([], [1])
[1, 2] + [3]
[] + [1]
[1] + []
[1, 2, 3].all(x, x > 0)
[1, 2, 3].all(x, x > 1)
[1, 2, 3].exists(x, x == 2)
[1, 2, 3].exists_one(x, x > 2)
[1, 2, 3].exists_one(x, x > 1)
[1, 2, 3].filter(x, x % 2 == 1)
[1, 2, 3].map(x, x * x)
[1, 2, 3].map(x, x > 1, x * x)
[0, 2].all(x, 4 / x != 2)
[2, 0].exists(x, 4 / x == 2)
[0, 2].exists(x, 4 / x == 2)
[0, 0].exists(x, 4 / x == 2)
[0].map(x, 1 / x)
[0].filter(x, 1 / x > 0)
[1, 0].exists_one(x, 1 / x == 1)
{'a': 1, 'b': 2}.all(k, k != 'c')
{'a': 1, 'b': 2}.exists(k, k == 'b')
{'a': 1}.map(k, k)
{'a': 1}.filter(k, true)
{'a': 1, 'b': 2}.exists_one(k, k == 'a')
[1, 2].all(i, v, i < v)
[1, 2].exists(i, v, i == 1 && v == 2)
[1, 2].existsOne(i, v, v == 2)
[1, 2].exists_one(i, v, v > 0)
[1, 2].transformList(i, v, i * 10 + v)
[1, 2].transformList(i, v, i > 0, v)
{'a': 1}.transformList(k, v, k)
{'a': 1, 'b': 2}.transformMap(k, v, v * 2)
{'a': 1, 'b': 2}.transformMap(k, v, v > 1, v * 2)
[1, 2].transformMap(i, v, v)
{'a': 'x', 'b': 'y'}.transformMapEntry(k, v, {v: k})
{'a': 'x', 'b': 'x'}.transformMapEntry(k, v, {v: k})
[1, 1].transformMapEntry(i, v, {v: i})
{'a': 'x', 'b': 'y'}.transformMapEntry(k, v, k == 'a', {v: k})
[1, 2].all(x, x, true)
[1, 2].all(__result__, x, true)
[1, 2].transformMap(1, v, v)
[1].map(x, [2].map(y, x + y))
[1].map(x, [2].map(x, x))
[1].map(x, x.y)
1.all(x, true)
'abc'.map(x, x)
{'a': 1}.?a
{'a': 1}.?b
{'a': 1}[?'b']
{'a': {'b': 1}}.?a.b
{'a': {'b': 1}}.?a.?c
{'a': {'b': 1}}.?c.b.orValue(3)
[1, 2][?5]
[1, 2][?0]
[[1], [2]][?0][0]
[[1], [2]][?9][0]
optional.of(1).or(optional.of(2))
optional.none().or(optional.of(2))
optional.none().orValue(2)
optional.of(1).orValue(1 / 0)
optional.none().orValue(1 / 0)
optional.of(1).value()
optional.none().value()
optional.of({'a': 1}).a
optional.of([1, 2])[1]
optional.of([1, 2])[5]
optional.of(1).optMap(x, x + 1)
optional.none().optMap(x, x + 1)
optional.of(0).optMap(x, 1 / x)
optional.of({'a': 1}).optFlatMap(x, x.?a)
optional.of({'a': 1}).optFlatMap(x, x.?b)
optional.of(1).optMap(1, 2)
[1, ?optional.of(2), ?optional.none()]
{'a': 1, ?'b': optional.of(2), ?'c': optional.none()}
[?1]
{?'a': 1}
{?'a': {'b': 1}.?b}
optional.unwrap([optional.of(1), optional.none()])
[optional.of('a'), optional.none()].unwrapOpt()
[1, 2].first()
[].last()
[1, 2].last().value()
optional.of(1) == optional.of(1)
optional.of(1) == optional.none()
optional.none() == optional.none()
optional.of(optional.none())
has({'a': 1}.a)
has({'a': 1}.b)
has({'a': {'b': 1}}.a.b)
has({'a': {'b': 1}}.b.c)
has({}.a)
cel.bind(x, 5, x + x)
cel.bind(x, [1, 2, 3].map(y, y * 2), x + x)
cel.bind(x, 1 / 0, true)
cel.bind(x, 1 / 0, x)
cel.bind(a.b, 1, 2)
cel.bind(x, 1, cel.bind(y, x + 1, x + y))
cel.bind(x, [1, 2], x.all(i, i in x))
true || 1 / 0 == 0
1 / 0 == 0 || true
false && 1 / 0 == 0
1 / 0 == 0 && false
1 / 0 == 0 && true
1 / 0 == 0 || false
1 / 0 == 0 || 1 % 0 == 0
true ? 1 : 1 / 0
false ? 1 / 0 : 2
1 / 0 == 1 ? 1 : 2
true ? 1 : 'a'
(true ? {'a': 1} : {'a': 2}).a
(true ? {'a': {'b': 1}} : {'a': {'b': 2}}).a.b
has((true ? {'a': 1} : {}).a)
(false ? [1] : [2, 3])[1]
1 == 1.0
1 == 1u
1u == 1.0
dyn(1) == 1u
dyn(1) == 'a'
dyn([1, 2]) == [1.0, 2.0]
{'a': dyn(1)} == {'a': dyn(1.0)}
1 < 1.5
1u < 2
2.0 > 1u
1 < 'a'
dyn(1) < dyn('a')
dyn('a') < dyn('b')
9223372036854775807 + 1
-9223372036854775808 - 1
9223372036854775807 * 2
-9223372036854775808 / -1
-9223372036854775808 % -1
-(-9223372036854775808)
0u - 1u
18446744073709551615u + 1u
1 / 0
1 % 0
1u / 0u
1u % 0u
1.0 / 0.0
-1.0 / 0.0
0.0 / 0.0
5 % -3
-5 % 3
-5 / 3
7 / -2
double('NaN') == double('NaN')
double('NaN') < 1.0
1 < double('NaN')
timestamp('2024-01-01T00:00:00Z') + duration('1h')
duration('1h') + timestamp('2024-01-01T00:00:00Z')
timestamp('2024-01-01T00:00:00Z') - duration('1h')
timestamp('2024-01-01T00:00:00Z') - timestamp('2023-01-01T00:00:00Z')
timestamp('9999-12-31T23:59:59Z') + duration('1s')
timestamp('0001-01-01T00:00:00Z') - duration('1ns')
timestamp('9999-12-31T23:59:59Z') - timestamp('0001-01-01T00:00:00Z')
duration('9223372036854775807ns') + duration('1ns')
-duration('1s')
duration('1h') > duration('1m')
timestamp('2024-01-01T00:00:00Z') < timestamp('2024-01-01T01:00:00+02:00')
timestamp('2024-01-01T00:00:00Z') == timestamp('2024-01-01T02:00:00+02:00')
string(timestamp('2024-01-01T02:00:00+02:00'))
string(timestamp('2024-01-01T02:00:00.120Z'))
string(duration('1h1m1.5s'))
string(duration('1ns'))
string(b'\\xff')
string(1.5)
string(1e20)
string(1e-7)
string(100000.0)
string(1234567.0)
string(true)
bytes('é').size()
size('日本')
'a' + 'b' + 'c'
b'a' + b'b'
'abc' < 'abd'
b'a' < b'b'
'\\x41\\101\\u0041\\U00000041'
b'\\x41\\xff'
r'\\d' + "x"
'''a
b'''
'a' in ['a', 'b']
'c' in ['a', 'b']
1 in [1u, 2u].map(x, x)
1.0 in [1, 2]
dyn(true) in [1, 2]
dyn(1) in [true]
[1] in [[1], [2]]
'a' in {'a': 1}
1 in {1u: 1}
dyn(1.0) in {1: 1}
{1: 'a'}[1u]
{1u: 'a'}[dyn(1)]
{1: 'a'}[dyn(1.0)]
{1: 'a'}[dyn(1.5)]
{true: 'a'}[true]
{true: 'a'}[dyn(1)]
[1, 2][1u]
[1, 2][dyn(1u)]
[1, 2][dyn(1.0)]
[1, 2][dyn(1.5)]
[1, 2][dyn('a')]
[1, 2][2]
[1, 2][-1]
{'a': 1}.b
{'a': 1}['b']
{'a': 1, 'a': 2}
{1: 1, 2: 2, 3: 3}.size()
type([]) == list
type({}) == map
type(null) == null_type
type(type(1)) == type
type(optional.of(1))
type(quantity('1'))
type(ip('::1'))
int == type(1)
string(int)
google.protobuf.Timestamp == type(timestamp(0))
foo
foo.bar
foo(1)
'a'.foo()
a.b.c
1 + 'a'
1 + 1u
1 + 1.0
'a' * 2
!1
-'a'
-true
[1, 'a']
[1, 2.0]
{'a': 1, 'b': 'c'}
{'a': 1, 2: 3}
[1, dyn('a')]
[[], [1]]
[{}, {'a': 1}]
[null, 1]
[null, 'a']
1 && true
true || 'a'
1 ? 2 : 3
true ? 1 : 2.0
'a'.size(1)
size()
size(1)
size(1, 2)
'a'.contains(1)
'a'.contains('a', 'b')
'a'.startsWith()
'abc'.matches(1)
has(1)
has(a)
has('a'.b)
has([1].a)
1.a
'a'.b
[1].a
[1]['a']
{'a': 1}[1]
1[0]
duration('x')
timestamp('x')
timestamp(1) + 1
duration('1s') * 2
'%s %d'.format(['a', 1])
'%s %d'.format(['a', 'b'])
'%s'.format([])
'%s'.format(['a', 'b'])
'%'.format(['a'])
'%z'.format(['a'])
'%.f'.format([1.0])
'%.3f'.format([1.23456])
'%f'.format([1234567.891])
'%.0f'.format([2.5])
'%e'.format([1234.5678])
'%e'.format([0.00012])
'%.2e'.format([-1234.5])
'%e'.format([1e100])
'%b'.format([5])
'%b'.format([true])
'%x'.format([255])
'%X'.format([255])
'%x'.format(['hello'])
'%x'.format([b'\\xff'])
'%x'.format([-255])
'%o'.format([8])
'%o'.format([-8])
'%d'.format([1u])
'%d'.format([1.0])
'%%'.format([])
'%s'.format([1.0])
'%s'.format([[1, 'a', 2.5, null, true]])
'%s'.format([[1.0, 2.5]])
'%s'.format([{'b': 1, 'a': 2}])
'%s'.format([{1: 'x'}])
'%s'.format([timestamp(0)])
'%s'.format([duration('1s')])
'%s'.format([[timestamp(0)]])
'%s'.format([b'abc'])
'%s'.format([[b'abc']])
'%s'.format([type(1)])
'%s'.format([optional.of(1)])
'%s'.format([quantity('1')])
'%s'.format([double('NaN')])
'%f'.format([double('Infinity')])
'%f'.format(['NaN'])
'%f'.format(['x'])
'日本 %s'.format(['x'])
'%日'.format(['x'])
authorizer.path('/healthz').check('get').allowed()
authorizer.path('').check('get').allowed()
authorizer.path('/x').check('deny').allowed()
authorizer.path('/x').check('get').reason()
authorizer.path('/x').check('fail').errored()
authorizer.path('/x').check('fail').error()
authorizer.path('/x').check('get').error()
authorizer.group('apps').resource('deployments').check('get').reason()
authorizer.group('').resource('pods').subresource('status').namespace('n').name('x').check('get').reason()
authorizer.group('').resource('').check('get').allowed()
authorizer.serviceAccount('ns', 'sa').path('/x').check('get').reason()
authorizer.serviceAccount('ns', 'sa').group('').resource('pods').check('get').reason()
authorizer.serviceAccount('N S', 'sa').path('/x').check('get').allowed()
authorizer.serviceAccount('ns', 'S A').path('/x').check('get').allowed()
authorizer.group('').resource('pods').fieldSelector('a=b').labelSelector('c in (d)').check('get').allowed()
authorizer.group('').resource('pods').check('list').allowed()
authorizer.path('/a').check('get').allowed() && authorizer.path('/b').check('get').allowed() && authorizer.path('/c').check('get').allowed()
authorizer == authorizer
authorizer.foo
authorizer.path(1)
JSONPatch{op: 'add', path: '/a', value: 1}
JSONPatch{op: 'move', path: '/a', from: '/b'}
JSONPatch{op: 1}
JSONPatch{foo: 1}
JSONPatch{op: 'add', value: {'a': [1, 'b']}}.value
JSONPatch{op: 'add'}.op
JSONPatch{op: 'add'}.path
has(JSONPatch{op: 'add'}.value)
[JSONPatch{op: 'add', path: '/' + jsonpatch.escapeKey('a/b~c'), value: Object.spec{a: 1}}]
Object{}
Object{spec: Object.spec{replicas: 3}}
Object{spec: Object.spec{containers: [Object.spec.containers{name: 'a'}]}}
Object{metadata: Object.metadata{labels: {'a': 'b'}}}
Object{?spec: optional.none()}
Object{?spec: optional.of(Object.spec{a: 1})}
Object{spec: Object.spec{a: 1}}.spec.a
Object{a: 1}.a
Object{a: 1}.b
has(Object{a: 1}.b)
Object{a: 1} == Object{a: 1}
Object{a: 1} == Object{a: 2}
Object{a: 1} == Object.x{a: 1}
Foo{a: 1}
int{a: 1}
Object{a: 1 / 0}
type(Object{})
[1, 2, 3].map(x, x).map(x, x).map(x, x)
x.a.b.c
x.a['b'].c
x.l[0]
x.l[x.i]
x.l[x.i + 1]
x.l[?x.i]
x[x.key]
x.?a.?b.c
x.m.map(k, x.m[k])
x.m.all(k, v, v > 0)
x.l.map(i, i + x.i)
x.l + x.l
x.l == [1, 2, 3]
x.m == {'p': 1, 'q': 2}
x.s.startsWith('he')
x.s + 1
x.f == 1
x.f > 1
x.n == null
x.n.a
has(x.a.b.c)
has(x.a.z.c)
has(x.z.c)
has(x.n)
x.t ? x.i : x.f
x.t && x.s == 'hello'
x.i && true
x.s ? 1 : 2
!x.i
-x.s
x.l.sum()
x.l.max() == 3
x.l.isSorted()
x.strs.join(',')
x.strs.exists(s, s.matches('^a'))
size(x.l) + size(x.m) + size(x.s)
x.i in x.l
'p' in x.m
x.l.filter(i, i > 1).size()
x.l.sortBy(i, -i)
x.l.distinct()
x.undefined == 1 || true
x.undefined == 1 && false
int(x.s)
int(x.f)
string(x.i) + x.s
x.l[10]
x.l['a']
x.m[1]
x.i.foo
x == x
x.a == x.a
type(x) == map
type(x.l)
dyn(x.l).all(i, i > 0)
quantity(x.s)
ip(x.s)
x.s.find('l+')
x.s.findAll('l', x.i)
x.s.matches(x.s)
x.s.format([1])
x.s.split('l').map(p, p.size())
optional.ofNonZeroValue(x.n)
optional.of(x.l).optMap(l, l.size())
(x.t ? x.a : x.m).b
[x.i, x.i]
[x.i, x.s]
{x.s: x.i}
{'k': x.undefined}
[x.undefined]
"""
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
            "items": {"type": "object", "required": ["k"], "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}},
        },
        "labels": {"type": "object", "maxProperties": 3, "additionalProperties": {"type": "string", "maxLength": 7}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "nested": {"type": "object", "properties": {"x": {"type": "object", "properties": {"y": {"type": "integer"}}}}},
        "nullable": {"type": "string", "nullable": True},
        "namespace": {"type": "string"},
        "a-b.c/d": {"type": "integer"},
        "__u": {"type": "integer"},
        "embedded": {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
        "2d": {"type": "integer"},
    },
}
DOCUMENT: dict[str, Any] = {
    "s": "hello", "long": "loooong", "e": "bcd", "i": 5, "f": 2, "b": True, "time": "2024-01-01T10:00:00+02:00", "date": "2024-01-01",
    "span": "1h30m", "data": "aGVsbG8=", "ios": "50%", "list": ["a", "bb", "ccc"], "ints": [3, 1, 2], "set": ["x", "y"],
    "map": [{"k": "a", "v": 1}, {"k": "b", "v": 2}], "labels": {"app": "web", "tier": "db"}, "free": {"q": 1},
    "nested": {"x": {"y": 7}}, "nullable": None, "namespace": "ns", "a-b.c/d": 4, "__u": 9,
    "embedded": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}, "2d": 1,
}  # fmt: skip
OLD: dict[str, Any] = {**DOCUMENT, "s": "bye", "set": ["y", "x"], "map": [{"k": "b", "v": 2}, {"k": "a", "v": 1}], "i": 4, "ints": [1, 2]}
TYPED_RULES = """
self.s == 'hello'
self.s.size() <= 10
self.long.contains(self.s)
self.long.contains('x')
self.e == 'a' || self.e == 'bcd'
self.e.startsWith(self.s)
self.i + 1 > 5
self.f * 2.0 == 4.0
self.f == self.i
self.b && self.i > 0
self.time > timestamp('2023-01-01T00:00:00Z')
self.time.getHours() == 8
self.time.getHours('+02:00')
string(self.time)
self.date == timestamp('2024-01-01T00:00:00Z')
self.span > duration('1h')
self.span.getMinutes()
string(self.data) == 'hello'
size(self.data)
self.ios == '50%'
type(self.ios) == string
int(self.ios) > 5
self.list.all(x, x.size() <= 3)
self.list.map(x, x + x)
self.list.exists(x, x == 'bb') && self.list.exists_one(x, x == 'a')
self.list.filter(x, x != 'a').size()
self.list + ['d']
['d'] + self.list
self.list == ['a', 'bb', 'ccc']
self.list.join('-')
self.list.isSorted()
self.list.max()
self.list.indexOf('bb')
self.list[0]
self.list[7]
self.list[?7].orValue('none')
'a' in self.list
'zz' in self.list
self.ints.sum() == 6
self.ints.all(x, self.ints.exists(y, x == y))
self.ints.map(x, x * 2)
self.ints.sort()
self.ints.isSorted()
self.ints.slice(0, 2)
self.ints.reverse()
self.ints.distinct()
sets.contains(self.ints, [1])
sets.equivalent(self.list, self.set)
self.set == ['y', 'x']
['y', 'x'] == self.set
self.set == oldSelf.set
self.set + ['z', 'x']
self.set + oldSelf.set == oldSelf.set
self.set.all(x, x in oldSelf.set)
self.map == oldSelf.map
self.map != oldSelf.map
self.map.all(m, m.k != '')
self.map.map(m, m.v)
self.map + [{'k': 'c', 'v': 3}]
self.map + oldSelf.map
self.map.exists(m, m.k == 'a' && m.v == 1)
self.map[0].k
self.map.filter(m, has(m.v)).size()
self.map.size() == 2
self.labels['app'] == 'web'
self.labels.app == 'web'
self.labels.missing
self.labels['missing']
self.labels.?missing.orValue('x')
has(self.labels.app)
'app' in self.labels
self.labels.all(k, self.labels[k].size() < 7)
self.labels.all(k, v, v.size() < 7)
self.labels.exists(k, k.startsWith('a'))
self.labels.size()
self.labels.transformList(k, v, v).size()
self.labels == oldSelf.labels
self.labels == {'app': 'web', 'tier': 'db'}
self.free
self.free == oldSelf.free
self.free.q
has(self.free.q)
self.nested.x.y == 7
has(self.nested.x.y)
has(self.nested.x.z)
self.nested == oldSelf.nested
self.nested.z
self.nullable
has(self.nullable)
self.namespace == 'ns'
self.__namespace__ == 'ns'
self.a__dash__b__dot__c__slash__d == 4
self.__underscores__u == 9
has(self.__underscores__u)
self.embedded.metadata.name == 'p'
self.embedded.kind
self.embedded.spec
self.2d
self.missing
has(self.missing)
self.s == oldSelf.s
self.i >= oldSelf.i
self == oldSelf
self == self
oldSelf.ints.all(x, x in self.ints)
type(self) == map
size(self) > 0
self.all(k, true)
self.exists(k, k == 's')
self.s.matches('^h.*o$')
self.s.matches(self.long)
self.s.find('l+')
self.s.findAll('l').size()
self.s.split('l')
self.s.replace('l', 'LL')
self.s.substring(1, 3)
self.s.lowerAscii() + self.long.upperAscii()
self.s + self.long + self.e
self.s < self.long
self.s in ['hello', 'world']
self.s in self.list
self.s.format([1])
'%s-%d'.format([self.s, self.i])
url(self.s).getHost()
quantity(self.s).isInteger()
ip(self.s)
isIP(self.s) || cidr('10.0.0.0/8').containsIP(self.s)
format.dns1123Label().validate(self.s).hasValue()
optional.of(self.s).optMap(x, x.size()).value()
self.?s.optMap(x, x + '!').orValue('')
self.?nested.?x.?y.orValue(0)
self.?nullable
self.b ? self.s : self.long
self.b ? self.list : ['x']
(self.b ? self.list : self.set).all(x, x != '')
self.list.map(x, self.set.map(y, x + y))
self.list.all(x, self.set.all(y, self.map.all(z, x != y && y != z.k)))
self.list.map(x, x).map(x, x.size()).sum()
[self.s, self.long].all(x, x != '')
{'a': self.s, 'b': self.long}.all(k, k != self.e)
[[self.s], self.list].flatten().size()
dyn(self.s) == self.s
dyn(self.list).all(x, x != '')
self.list.transformMap(i, v, v)
self.list.transformList(i, v, i)
self.time + self.span
self.time - self.date
self.data + b'x'
self.data == b'hello'
bytes(self.s)
self.ints + [1]
self.ints.min() > 0 ? self.ints.max() : -1
'%s'.format([self.time])
'%s'.format([self.list])
'%s'.format([self.labels])
self.labels.map(k, k).join(',').size()
self.list.sortBy(x, x.size())
self.map.map(m, m.k).join(',')
self.i / 0
self.i
self.s
self
self.list
1
""".strip().splitlines()


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
    lines = OTHERS.strip().replace("'''a\nb'''", "'''a\\nb'''").splitlines()
    for line in lines:
        yield _case(line, variables={"x": DYNAMIC}, libraries=ALL_LIBRARIES)
    for rule in TYPED_RULES:
        yield _case(rule, schema=TYPED, self=DOCUMENT, oldSelf=OLD)
    for rule in ("oldSelf.hasValue() && self == oldSelf.value()", "oldSelf.optMap(o, o.i <= self.i).orValue(true)", "oldSelf.?s"):
        for old in (OLD, None):
            yield _case(rule, schema=TYPED, self=DOCUMENT, oldSelf=old, optionalOldSelf=True)
    yield from _limits()


def _limits() -> Iterator[dict[str, Any]]:
    deep = [
        "(" * depth + "1" + ")" * depth for depth in (10, 240, 248, 249, 250, 251, 300)
    ] + ["[" * depth + "]" * depth for depth in (240, 250, 260)]
    deep += ["1" + " + 1" * count for count in (10, 240, 247, 248, 249, 250, 251, 300)]
    deep += ["x" + ".a" * count for count in (10, 240, 247, 248, 249, 250, 251, 300)]
    deep += ["true" + " && true" * 400, "!" * 300 + "true", "-" * 301 + "1", "true" + " ? true : false" * 1 + "", "x" + "[0]" * 251]
    deep += ["true ? 1 : " * 200 + "1", "true ? 1 : " * 260 + "1", "f(" * 260 + ")" * 260, "[1].map(x, " * 30 + "x" + ")" * 30]
    deep += ["'" + "a" * 5000 + "'.size()", "1 " * 300, "'" + "é" * 100_001 + "'", "a" + " == a" * 260, "1" + " * 1" * 200]
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
