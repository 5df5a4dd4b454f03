"""The syntax of names, label keys and values, with the texts of Kubernetes' refusals.

Each function returns messages, none for well-formed text, as ``k8s.io/apimachinery/pkg/util/validation``
does. Results are cached: a cluster uses the same few label keys over and over.
"""

from __future__ import annotations

import ipaddress
import json
import re

from kemu.emulated.objects.caches import text_cache

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = _LABEL + r"(\." + _LABEL + ")*"
_DNS_1035_LABEL = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_WITH_UNDERSCORE = r"_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SEARCH_DOMAIN = _WITH_UNDERSCORE + r"(\." + _WITH_UNDERSCORE + ")*"
_KEY_NAME = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = f"({_KEY_NAME})?"

_label = re.compile(_LABEL, re.ASCII)
_subdomain = re.compile(_SUBDOMAIN, re.ASCII)
_dns_1035_label = re.compile(_DNS_1035_LABEL, re.ASCII)
_key_name = re.compile(_KEY_NAME, re.ASCII)
_label_value = re.compile(_LABEL_VALUE, re.ASCII)
_port_name = re.compile(r"[-a-z0-9]+", re.ASCII)
_config_map_key = re.compile(r"[-._a-zA-Z0-9]+", re.ASCII)
_http_path = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+", re.ASCII)
_identifier = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_wildcard = re.compile(r"\*\." + _SUBDOMAIN, re.ASCII)
_http_header = re.compile(r"[-A-Za-z0-9]+", re.ASCII)
_letter = re.compile(r"[a-z]", re.ASCII)
_search_domain = re.compile(_SEARCH_DOMAIN, re.ASCII)
_variable_name = re.compile(r"[ -<>-~]*", re.ASCII)

LABEL_LENGTH = 63
SUBDOMAIN_LENGTH = 253
PORT_NAME_LENGTH = 15

_KEY_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
)

Messages = tuple[str, ...]
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _too_long(limit: int, unit: str = "characters") -> str:
    return f"must be no more than {limit} {unit}"


def _shape(rule: str, pattern: str, *examples: str) -> str:
    such_as = "e.g. " * bool(examples) + " or ".join(f"'{example}', " for example in examples)
    return f"{rule} ({such_as}regex used for validation is '{pattern}')"


@text_cache(16_384)
def dns_label(text: str) -> Messages:
    """A DNS-1123 label, as names of namespaces and containers are."""
    problems = []
    if len(text) > LABEL_LENGTH:
        problems.append(_too_long(LABEL_LENGTH))
    if not _label.fullmatch(text):
        if _subdomain.fullmatch(text):
            problems.append("must not contain dots")
        else:
            problems.append(
                _shape(
                    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
                    "and must start and end with an alphanumeric character",
                    _LABEL,
                    "my-name",
                    "123-abc",
                )
            )
    return tuple(problems)


def dns_subdomain(text: str) -> Messages:
    """A DNS-1123 subdomain, as names of pods and nodes are. Not cached: such names are mostly seen once."""
    if len(text) <= SUBDOMAIN_LENGTH and _subdomain.fullmatch(text):
        return ()
    problems = []
    if len(text) > SUBDOMAIN_LENGTH:
        problems.append(_too_long(SUBDOMAIN_LENGTH))
    if not _subdomain.fullmatch(text):
        problems.append(
            _shape(
                "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', "
                "and must start and end with an alphanumeric character",
                _SUBDOMAIN,
                "example.com",
            )
        )
    return tuple(problems)


def search_domain(text: str) -> Messages:
    """A domain in which names are looked up: a subdomain whose labels may have underscores."""
    problems = [_too_long(SUBDOMAIN_LENGTH)] if len(text) > SUBDOMAIN_LENGTH else []
    if not _search_domain.fullmatch(text):
        rule = (
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', "
            "and must start and end with an alphanumeric character"
        )
        problems.append(_shape(rule, _SEARCH_DOMAIN, "example.com"))
    return tuple(problems)


def variable_name(text: str) -> Messages:
    """The name of an environment variable (``IsRelaxedEnvVarName``)."""
    if not text:
        return ("environment variable name must be non-empty",)
    if _variable_name.fullmatch(text):
        return ()
    return ("a valid environment variable name must consist only of printable ASCII characters other than '='",)


def wildcard_or_subdomain(text: str) -> Messages:
    """A host of an Ingress: one with an asterisk stands for the subdomains of another."""
    if "*" not in text:
        return dns_subdomain(text)
    problems = [] if len(text) <= SUBDOMAIN_LENGTH else [_too_long(SUBDOMAIN_LENGTH)]
    if not _wildcard.fullmatch(text):
        rule = (
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist "
            "of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character"
        )
        problems.append(_shape(rule, _wildcard.pattern, "*.example.com"))
    return tuple(problems)


@text_cache(1024)
def dns_1035_label(text: str) -> Messages:
    """A DNS-1035 label, as names of services are."""
    problems = []
    if len(text) > LABEL_LENGTH:
        problems.append(_too_long(LABEL_LENGTH))
    if not _dns_1035_label.fullmatch(text):
        problems.append(
            _shape(
                "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
                "alphabetic character, and end with an alphanumeric character",
                _DNS_1035_LABEL,
                "my-name",
                "abc-123",
            )
        )
    return tuple(problems)


@text_cache(16_384)
def label_key(text: str) -> Messages:
    """A label key, which is also the form of resource names, taint keys and finalizers: ``example.com/name``."""
    problems: list[str] = []
    parts = text.split("/")
    shape = _shape(_KEY_RULE, _KEY_NAME, "MyName", "my.name", "123-abc")
    if len(parts) > 2:
        return (f"a valid label key {shape} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",)
    name = parts[-1]
    if len(parts) == 2:
        if not parts[0]:
            problems.append("prefix part must be non-empty")
        else:
            inner = (
                problem.replace(_too_long(SUBDOMAIN_LENGTH), _too_long(SUBDOMAIN_LENGTH, "bytes"))
                for problem in dns_subdomain(parts[0])
            )
            problems.extend(f"prefix part {problem}" for problem in inner)
    if not name:
        problems.append("name part must be non-empty")
    elif len(name) > LABEL_LENGTH:
        problems.append(f"name part {_too_long(LABEL_LENGTH, 'bytes')}")
    if not _key_name.fullmatch(name):
        problems.append(f"name part {shape}")
    return tuple(problems)


@text_cache(65_536)
def label_value(text: str) -> Messages:
    """A label value; it may be empty."""
    problems = []
    if len(text) > LABEL_LENGTH:
        problems.append(_too_long(LABEL_LENGTH, "bytes"))
    if not _label_value.fullmatch(text):
        problems.append(
            _shape(
                "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
                "and must start and end with an alphanumeric character",
                _LABEL_VALUE,
                "MyValue",
                "my_value",
                "12345",
            )
        )
    return tuple(problems)


@text_cache(4096)
def domain_name(text: str) -> tuple[str, str]:
    """``IsFullyQualifiedDomainName``: the part that is wrong, and what is wrong with it; empty texts: nothing is."""
    name = text.removesuffix(".")
    if problems := dns_subdomain(name):
        return name, ",".join(problems)
    if "." not in name:
        return name, "should be a domain with at least two segments separated by dots"
    return next(((label, ",".join(problems)) for label in name.split(".") if (problems := dns_label(label))), ("", ""))


def port_name(text: str) -> Messages:
    """The name of a container port."""
    problems = []
    if len(text) > PORT_NAME_LENGTH:
        problems.append(_too_long(PORT_NAME_LENGTH))
    if not _port_name.fullmatch(text):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not _letter.search(text):
        problems.append("must contain at least one letter (a-z)")
    if "--" in text:
        problems.append("must not contain consecutive hyphens")
    if text.startswith("-") or text.endswith("-"):
        problems.append("must not begin or end with a hyphen")
    return tuple(problems)


def tagged_image(name: str) -> str:
    """The name of an image, with ``:latest`` where it has neither tag nor digest (``normalizedImageName``)."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


def is_int64(text: str) -> bool:
    """Whether Go's ``strconv.ParseInt(text, 10, 64)`` accepts the text."""
    return int64(text) is not None


@text_cache(16_384)
def int64(text: str) -> int | None:
    """The number that Go's ``strconv.ParseInt(text, 10, 64)`` reads, None where it refuses."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    # Longer texts than any int64 with some leading zeros are refused before int() looks at them.
    if not digits.isascii() or not digits.isdigit() or len(digits) > 1000:
        return None
    number = int(text)
    return number if -(2**63) <= number < 2**63 else None


def path_segment(text: str) -> Messages:
    """The name can be a part of a URL's path (``path.ValidatePathSegmentName``); roles are named so."""
    if text in (".", ".."):
        return (f"may not be '{text}'",)
    return path_segment_prefix(text) if "/" in text or "%" in text else ()


def path_segment_prefix(text: str) -> Messages:
    """A name that begins so can be one (``IsValidPathSegmentPrefix``)."""
    return tuple(f"may not contain '{part}'" for part in ("/", "%") if part in text)


_VALID_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_VALID_NETWORK = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def address(text: str) -> Messages:
    """An IP address in its only right form (``IsValidIP``); IPAddresses are named so."""
    return old_address(text) or _in_form(text, ipaddress.ip_address(text))


def interface_address(text: str) -> Messages:
    """An address with the size of its network (``IsValidInterfaceAddress``)."""
    parsed = parsed_network(text)
    if parsed is None:
        return ("must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)",)
    address, within = parsed
    canonical = f"{address}/{within.prefixlen}"
    return () if text == canonical else (f'must be in canonical form ("{canonical}")',)


def network(text: str) -> Messages:
    """A range of addresses in its only right form (``IsValidCIDR``)."""
    return old_network(text) or _in_form(text, ipaddress.ip_network(text))


def _in_form(text: str, parsed: object) -> Messages:
    return () if str(parsed) == text else (f'must be in canonical form ("{parsed}")',)


def old_address(text: str) -> Messages:
    """An IP address in a field that is older than that (``IsValidIPForLegacyField``)."""
    if _four_numbers.fullmatch(text):
        return ()
    parsed = parsed_address(text)
    if parsed is None:
        return (_VALID_ADDRESS,)
    if without_zeros(text) != text:
        return ("must not have leading 0s",)
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        return ("must not be an IPv4-mapped IPv6 address",)
    return ()


_NUMBER = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_four_numbers = re.compile(rf"{_NUMBER}(\.{_NUMBER}){{3}}")
"""Nearly all addresses: each pod has one of its own."""


def parsed_address(text: str) -> Address | None:
    """An IP address, also with zeros in front of its numbers (``ParseIPSloppy``); None: it is none."""
    try:
        return None if "%" in text else ipaddress.ip_address(without_zeros(text))
    except ValueError:
        return None


def parsed_network(text: str) -> tuple[Address, Network] | None:
    """The address and the range that it is in, of ``10.0.0.1/24``, also in a bad form (``ParseCIDRSloppy``); None: it
    is no range."""
    head, _, length = text.partition("/")
    first = parsed_address(head)
    if first is None or not (length.isascii() and length.isdigit()):
        return None
    try:
        return first, ipaddress.ip_network(f"{without_zeros(head)}/{int(length)}", strict=False)
    except ValueError:
        return None


def old_network(text: str) -> Messages:
    """A range in a field that is older (``IsValidCIDRForLegacyField``)."""
    parsed = parsed_network(text)
    if parsed is None:
        return (_VALID_NETWORK,)
    first, whole = parsed
    if not is_without_zeros(text):
        return ("must not have leading 0s in IP or prefix length",)
    if isinstance(first, ipaddress.IPv6Address) and first.ipv4_mapped is not None:
        return ("must not have an IPv4-mapped IPv6 address",)
    if first != whole.network_address:
        return ("must not have bits set beyond the prefix length",)
    return ()


def is_without_zeros(network: str) -> bool:
    """Whether no number of a range has zeros in front of it."""
    head, _, length = network.partition("/")
    return without_zeros(head) == head and str(int(length)) == length


def without_zeros(text: str) -> str:
    """An address of IPv4 without zeros in front of its numbers, which Go once ignored."""
    parts = text.split(".")
    is_right = len(parts) == 4 and all(part.isascii() and part.isdigit() for part in parts)
    return ".".join(str(int(part)) for part in parts) if is_right else text


def lower_uuid(text: str) -> Messages:
    """A UUID in its normal form (``validateUID``)."""
    size = len(text.encode())
    prefix, suffix = {36: (0, 0), 45: (9, 0), 38: (1, 1), 32: (0, 0)}.get(size, (-1, 0))
    if prefix < 0:
        return (f"error validating uid: invalid UUID length: {size}",)
    if size == 45 and text[:9].lower() != "urn:uuid:":
        return (f"error validating uid: invalid urn prefix: {json.dumps(text[:9], ensure_ascii=False)}",)
    if size == 38 and (text[0] != "{" or text[-1] != "}"):
        return ("error validating uid: invalid bracketed UUID format",)
    if not (_hexadecimal if size == 32 else _uuid).fullmatch(text[prefix : len(text) - suffix]):
        return ("error validating uid: invalid UUID format",)
    if size != 36 or text != text.lower():
        form = "`xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase hexadecimal characters"
        return (f"uid must be in RFC 4122 normalized form, {form}",)
    return ()


_hexadecimal = re.compile("[0-9a-fA-F]{32}")
_uuid = re.compile("[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def config_map_key(text: str) -> Messages:
    """A key of a ConfigMap or Secret (``IsConfigMapKey``)."""
    problems = []
    if len(text) > SUBDOMAIN_LENGTH:
        problems.append(_too_long(SUBDOMAIN_LENGTH))
    if not _config_map_key.fullmatch(text):
        rule = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
        problems.append(_shape(rule, "[-._a-zA-Z0-9]+", "key.name", "KEY_NAME", "key-name"))
    if text in (".", ".."):
        problems.append(f"must not be '{text}'")
    elif text.startswith(".."):
        problems.append("must not start with '..'")
    return tuple(problems)


def condition_reason(text: str) -> Messages:
    """The reason of a condition (``isValidConditionReason``)."""
    return () if _condition_reason.fullmatch(text) else (_CONDITION_REASON_MESSAGE,)


_CONDITION_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_condition_reason = re.compile(_CONDITION_REASON)
_CONDITION_REASON_MESSAGE = _shape(
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_'",
    _CONDITION_REASON,
    *("my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"),
)


def http_header(text: str) -> Messages:
    """The name of a header of a request."""
    if _http_header.fullmatch(text):
        return ()
    rule = "a valid HTTP header must consist of alphanumeric characters or '-'"
    return (_shape(rule, _http_header.pattern, "X-Header-Name"),)


def http_path(text: str) -> Messages:
    """A part of a URL's path."""
    return () if _http_path.fullmatch(text) else (_shape("Invalid path", _http_path.pattern),)


def identifier(text: str) -> Messages:
    """An identifier as the language C has them (``IsCIdentifier``)."""
    if _identifier.fullmatch(text):
        return ()
    rule = (
        "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric "
        "characters or '_'"
    )
    return (_shape(rule, _identifier.pattern, "my_name", "MY_NAME", "MyName"),)
