"""Named formats: ``format.dns1123Label().validate(name)``."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from kemu.emulated.cel import times, types
from kemu.emulated.cel.declarations import Functions
from kemu.emulated.cel.libraries import urls
from kemu.emulated.cel.types import STRING
from kemu.emulated.cel.values import NO_OVERLOAD, NONE, Error, Opaque, Optional, Value
from kemu.emulated.objects import names

_FORMAT = types.object_of("kubernetes.NamedFormat", {})
_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")
_TIME = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))")
_TIME_PATTERN_SIZE = 76
_UUID_PATTERN_SIZE = 80

#: Says what is wrong with a text; nothing if it is of the format.
Check = Callable[[str], Sequence[str]]


class Format(Opaque):
    """A format and the size of the pattern that stands for its cost."""

    __slots__ = ("check", "name", "pattern_size")
    type_name = "kubernetes.NamedFormat"
    constant_equality = True

    def __init__(self, name: str, check: Check, pattern_size: int) -> None:
        self.name = name
        self.check = check
        self.pattern_size = pattern_size

    def equal(self, other: Value) -> Value:
        if type(other) is not Format:
            return other if type(other) is Error else NO_OVERLOAD
        return self.name == other.name


def _prefix(check: Check) -> Check:
    """A prefix of generated names may end in a dash."""

    def of_prefix(text: str) -> Sequence[str]:
        return check(f"{text[:-2]}a" if len(text) > 1 and text.endswith("-") else text)

    return of_prefix


def _qualified_name(text: str) -> Sequence[str]:
    return names.label_key(text)


def _uri(text: str) -> Sequence[str]:
    wrong = urls.request_error(text)
    return () if wrong is None else (wrong,)


def _test(test: Callable[[str], bool], message: str) -> Check:
    return lambda text: () if test(text) else (message,)


def _is_date_time(text: str) -> bool:
    day, _, rest = text.lower().partition("t")
    clock = _TIME.fullmatch(rest.partition("t")[0])
    if clock is None or len(text) < 4 or times.parse_date(day) is None:
        return False
    return clock[1] <= "23" and clock[2] <= "59" and clock[3] <= "59"


_FORMATS = {
    "dns1123Label": Format("DNS1123Label", names.dns_label, 30),
    "dns1123Subdomain": Format("DNS1123Subdomain", names.dns_subdomain, 60),
    "dns1035Label": Format("DNS1035Label", names.dns_1035_label, 30),
    "qualifiedName": Format("QualifiedName", _qualified_name, 60),
    "dns1123LabelPrefix": Format("DNS1123LabelPrefix", _prefix(names.dns_label), 30),
    "dns1123SubdomainPrefix": Format("DNS1123SubdomainPrefix", _prefix(names.dns_subdomain), 60),
    "dns1035LabelPrefix": Format("DNS1035LabelPrefix", _prefix(names.dns_1035_label), 30),
    "labelValue": Format("LabelValue", names.label_value, 40),
    "uri": Format("URI", _uri, 1103),
    "uuid": Format(
        "uuid",
        _test(lambda text: _UUID.fullmatch(text) is not None, "does not match the UUID format"),
        _UUID_PATTERN_SIZE,
    ),
    "byte": Format("byte", _test(lambda text: _BASE64.fullmatch(text) is not None, "invalid base64"), 84),
    "date": Format("date", _test(lambda text: times.parse_date(text) is not None, "invalid date"), _TIME_PATTERN_SIZE),
    "datetime": Format("datetime", _test(_is_date_time, "invalid datetime"), _TIME_PATTERN_SIZE),
}


def _validate(given: Value, text: Value) -> Value:
    wrong = given.check(text)
    return Optional(True, list(wrong)) if wrong else NONE


def _named(name: Value) -> Value:
    return Optional(True, _FORMATS[name]) if name in _FORMATS else NONE


def declare(functions: Functions) -> None:
    result = types.optional_of(types.list_of(STRING))
    functions.member("validate", "format-validate", (_FORMAT, STRING), result, _validate)
    functions.free("format.named", "format-named", (STRING,), types.optional_of(_FORMAT), _named)
    for name, constant in _FORMATS.items():
        functions.free(f"format.{name}", f"format.{name}", (), _FORMAT, lambda constant=constant: constant)
