"""Formats of strings (``kube-openapi/pkg/validation/strfmt``)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kemu.emulated.objects import patterns

_UUID = r"(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?%s-?%s-?[0-9a-f]{12}$"
_ANY4 = "[0-9a-f]{4}"
_BYTE = r"(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])"
_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"

_PATTERNS = {
    "bsonobjectid": r"^[0-9a-fA-F]{24}$",
    "uuid": _UUID % (_ANY4, _ANY4),
    "uuid3": _UUID % ("3[0-9a-f]{3}", _ANY4),
    "uuid4": _UUID % ("4[0-9a-f]{3}", "[89ab][0-9a-f]{3}"),
    "uuid5": _UUID % ("5[0-9a-f]{3}", "[89ab][0-9a-f]{3}"),
    "hexcolor": r"^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$",
    "rgbcolor": rf"^rgb\(\s*{_BYTE}\s*,\s*{_BYTE}\s*,\s*{_BYTE}\s*\)$",
    "byte": r"^(?:[A-Za-z0-9+\/]{4})*(?:[A-Za-z0-9+\/]{2}==|[A-Za-z0-9+\/]{3}=|[A-Za-z0-9+\/]{4})$",
}
_HOSTNAME = (
    r"^([a-zA-Z0-9\p{S}\p{L}]((-?[a-zA-Z0-9\p{S}\p{L}]{0,62})?)|([a-zA-Z0-9\p{S}\p{L}](([a-zA-Z0-9-\p{S}\p{L}]{0,61}"
    r"[a-zA-Z0-9\p{S}\p{L}])?)(\.)){1,}([a-zA-Z\p{L}]){2,63})$"
)
_CREDIT_CARD = (
    r"^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|(222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720)[0-9]{12}"
    r"|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\d{3})\d{11}"
    r"|6[27][0-9]{14})$"
)


def normalized(name: str) -> str:
    return name.replace("-", "")


def is_supported(name: str) -> bool:
    """Whether schemas of custom resources may use the format; others are ignored."""
    return normalized(name) in _KNOWN


_OF_NUMBERS = {"integer": ("int32", "int64"), "number": ("float", "double")}
_INNER = ("properties", "patternProperties", "definitions", "dependencies")
_SINGLE = ("items", "additionalProperties", "additionalItems", "not")
_SEVERAL = ("allOf", "anyOf", "oneOf")


def unrecognized(schema: Mapping[str, Any]) -> Iterator[str]:
    """Formats in a schema, in JSON, that mean nothing where they stand (``GetUnrecognizedFormats``)."""
    name, kind = schema.get("format"), schema.get("type", "")
    if name:
        known = is_supported(name) if kind in ("", "string") else name in _OF_NUMBERS.get(kind, ())
        if not known:
            yield name
    inner = [schema[key] for key in _SINGLE if isinstance(schema.get(key), Mapping)]
    for key in _SEVERAL:
        inner += schema.get(key) or []
    for key in _INNER:
        inner += [one for one in (schema.get(key) or {}).values() if isinstance(one, Mapping)]
    for one in inner:
        yield from unrecognized(one)


def find(name: str) -> Callable[[str], bool] | None:
    """What judges strings of a format; None: it is not one of strings."""
    return _KNOWN.get(normalized(name))


def _by_pattern(pattern: str) -> Callable[[str], bool]:
    return lambda text: patterns.matches(pattern, text)


def _is_uri(text: str) -> bool:
    """``url.ParseRequestURI``."""
    if not text or any(ord(one) < 0x20 or ord(one) == 0x7F for one in text):
        return False
    if text == "*":
        return True
    rest = text
    scheme = re.match(r"([a-zA-Z][a-zA-Z0-9+.-]*):", text)
    if scheme is not None:
        rest = text[scheme.end() :]
    elif text.startswith(":"):
        return False
    if not rest.startswith("/"):
        # An opaque part is a request URI with a scheme only; a first segment with a colon is none at all.
        return scheme is not None and bool(rest)
    path = rest.partition("?")[0]
    if rest.startswith("//") and (scheme is not None or not rest.startswith("///")):
        authority, _, below = path[2:].partition("/")
        path = below
        if not _is_authority(authority):
            return False
    return _unescapes(path)


def _is_authority(text: str) -> bool:
    user, at, host = text.rpartition("@")
    if at and not re.fullmatch(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*", user):
        return False
    if at and not _unescapes(user):
        return False
    if host.startswith("["):
        inner = host.rfind("]")
        return inner >= 0 and re.fullmatch(r"(:[0-9]*)?", host[inner + 1 :]) is not None
    name, colon, port = host.rpartition(":")
    if colon and not re.fullmatch("[0-9]*", port):
        return False
    name = name if colon else host
    if re.search(r"%(?![0-9a-fA-F]{2})", name) or re.search(r"%(?!25)[0-7]", name):
        return False
    return not any(ord(one) < 0x80 and not re.match(r"[A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>\"%]", one) for one in name)


def _unescapes(text: str) -> bool:
    return re.search(r"%(?![0-9a-fA-F]{2})", text) is None


_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\-\u0080-\U0010ffff]"
_QUOTED = r'"(?:[^"\\\x00-\x08\x0a-\x1f\x7f]|\\[^\x00-\x08\x0a-\x1f\x7f])*"'
_LOCAL = rf"(?:{_ATOM}+(?:\.{_ATOM}+)*|{_QUOTED})"
_DOMAIN = rf"(?:{_ATOM}+(?:\.{_ATOM}+)*|\[[^\[\]\s]*\])"
# Compiled when they are first used: these two take longer than the whole module.
_EMAIL = rf"\s*(?:(?:(?:{_ATOM}|\.)+|{_QUOTED})(?:\s+(?:(?:{_ATOM}|\.)+|{_QUOTED}))*\s*)?<{_LOCAL}@{_DOMAIN}>\s*"
_BARE_EMAIL = rf"\s*{_LOCAL}@{_DOMAIN}\s*(?:\([^()]*\)\s*)?"


def _is_email(text: str) -> bool:
    """``mail.ParseAddress``: with or without a name before it."""
    return re.fullmatch(_BARE_EMAIL, text) is not None or re.fullmatch(_EMAIL, text) is not None


def _is_hostname(text: str) -> bool:
    if not patterns.matches(_HOSTNAME, text) or len(text.encode()) > 255:
        return False
    return all(len(part.encode()) <= 63 for part in text.split("."))


def _ip(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """``netutils.ParseIPSloppy``: zeros may lead the numbers of an IPv4 address."""
    if "%" in text:
        return None
    try:
        if ":" not in text:
            if not re.fullmatch(r"[0-9]+(\.[0-9]+){3}", text):
                return None
            return ipaddress.IPv4Address(".".join(str(int(one)) for one in text.split(".")))
        head, dot, _ = text.rpartition(":")
        last = text[len(head) + 1 :]
        if "." in last:
            if not re.fullmatch(r"[0-9]+(\.[0-9]+){3}", last):
                return None
            text = head + dot + ".".join(str(int(one)) for one in last.split("."))
        return ipaddress.IPv6Address(text)
    except ValueError:
        return None


def _is_ipv4(text: str) -> bool:
    return "." in text and _ip(text) is not None


def _is_ipv6(text: str) -> bool:
    """``net.ParseIP``, which takes no leading zeros."""
    if ":" not in text or re.search(r"(?<![0-9a-fA-F])0[0-9]+\.|\.0[0-9]+", text):
        return False
    return _ip(text) is not None


def _is_cidr(text: str) -> bool:
    address, slash, bits = text.partition("/")
    found = _ip(address) if slash else None
    return found is not None and re.fullmatch("[0-9]+", bits) is not None and int(bits) <= found.max_prefixlen


def _is_mac(text: str) -> bool:
    for size in (6, 8, 20):
        pairs = f"[0-9a-fA-F]{{2}}([:-])(?:[0-9a-fA-F]{{2}}\\1){{{size - 2}}}[0-9a-fA-F]{{2}}"
        quads = f"[0-9a-fA-F]{{4}}(?:\\.[0-9a-fA-F]{{4}}){{{size // 2 - 1}}}"
        if re.fullmatch(pairs, text) or re.fullmatch(quads, text):
            return True
    return False


def _bare(text: str) -> str:
    return re.sub(r"[\s-]+", "", text, flags=re.ASCII)


def _is_isbn10(text: str) -> bool:
    text = _bare(text)
    if not re.fullmatch("[0-9]{9}[0-9X]", text):
        return False
    figures = [10 if one == "X" else int(one) for one in text]
    return sum((index + 1) * one for index, one in enumerate(figures)) % 11 == 0


def _is_isbn13(text: str) -> bool:
    text = _bare(text)
    if not re.fullmatch("[0-9]{13}", text):
        return False
    checksum = sum((1, 3)[index % 2] * int(one) for index, one in enumerate(text[:12]))
    return int(text[12]) == (10 - checksum % 10) % 10


def _is_credit_card(text: str) -> bool:
    text = _bare(text)
    if not patterns.matches(_CREDIT_CARD, text):
        return False
    total = 0
    for index, one in enumerate(reversed(text[:-1])):
        figure = int(one) * (2 if index % 2 == 0 else 1)
        total += figure - 9 if figure > 9 else figure
    return (total + int(text[-1])) % 10 == 0


def _is_ssn(text: str) -> bool:
    return len(text) == 11 and re.fullmatch(r"[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}", text) is not None


def is_date(text: str) -> bool:
    found = re.fullmatch(r"([0-9]{4})-([0-9]{2})-([0-9]{2})", text)
    if found is None:
        return False
    year, month, day = map(int, found.groups())
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = (31, 29 if is_leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    return 1 <= month <= 12 and 1 <= day <= days[month - 1]


def is_date_time(text: str) -> bool:
    parts = text.lower().split("t")
    if len(text) < 4 or len(parts) < 2 or not is_date(parts[0]):
        return False
    found = re.fullmatch(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))", parts[1])
    return found is not None and found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


_UNITS = ("ns", "us", "µs", "ms", "s", "m", "h", "d", "w")
_ROOTS = ("nano", "micro", "milli", "sec", "min", "hour", "day", "week")
_OTHERS = ("hr", "wk")
_GO_DURATION = re.compile(r"[-+]?(?:0|(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)")


def is_duration(text: str) -> bool:
    """Go's durations, and words such as ``2 weeks``."""
    if _GO_DURATION.fullmatch(text):
        return True
    found = False
    for number, word in re.findall(r"([0-9]+)[\t\n\f\r ]*([A-Za-zµ]+)", text):
        if int(number) >= 1 << 63:
            return False
        unit = word.lower()
        found = found or unit in _UNITS or unit in _OTHERS or unit.startswith(_ROOTS)
    return found


_KNOWN: dict[str, Callable[[str], bool]] = {
    **{name: _by_pattern(pattern) for name, pattern in _PATTERNS.items()},
    "uri": _is_uri,
    "email": _is_email,
    "hostname": _is_hostname,
    "ipv4": _is_ipv4,
    "ipv6": _is_ipv6,
    "cidr": _is_cidr,
    "mac": _is_mac,
    "isbn": lambda text: _is_isbn10(text) or _is_isbn13(text),
    "isbn10": _is_isbn10,
    "isbn13": _is_isbn13,
    "creditcard": _is_credit_card,
    "ssn": _is_ssn,
    "password": lambda _: True,
    "date": is_date,
    "datetime": is_date_time,
    "duration": is_duration,
    "k8sshortname": lambda text: len(text) <= 63 and re.fullmatch(_LABEL, text) is not None,
    "k8slongname": lambda text: len(text) <= 253 and re.fullmatch(rf"{_LABEL}(\.{_LABEL})*", text) is not None,
}
