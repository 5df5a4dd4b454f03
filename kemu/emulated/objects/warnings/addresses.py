"""IP addresses and ranges that are not written as they should be (``apimachinery/pkg/util/validation/ip.go``)."""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterator

from kemu.emulated.objects import names
from kemu.emulated.objects.caches import text_cache


@text_cache(4096)
def odd(text: str) -> str:
    """What is odd about an address; empty: nothing, or it is no address."""
    parsed = names.parsed_address(text)
    if parsed is None:
        return ""
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        return f"non-standard IP address {json.dumps(text)} is invalid: use {_quoted(parsed.ipv4_mapped)}"
    if names.without_zeros(text) != text:
        return f"non-standard IP address {json.dumps(text)} is invalid: use {_quoted(parsed)}"
    if str(parsed) != text:
        return f"IPv6 address {json.dumps(text)} should be in RFC 5952 canonical format ({_quoted(parsed)})"
    return ""


def of_address(text: str, path: str) -> Iterator[str]:
    """The same, at ``path``."""
    if told := odd(text):
        yield f"{path}: {told}"


def of_range(text: str, path: str) -> Iterator[str]:
    """The same of a range, as ``10.0.0.0/24``."""
    parsed = names.parsed_network(text)
    if parsed is None:
        return
    first, whole = parsed
    told = False
    if first != whole.network_address:
        alone = f"{first}/{first.max_prefixlen}"
        yield (
            f"{path}: CIDR value {json.dumps(text)} is ambiguous in this context"
            f" (should be {_quoted(whole)} or {_quoted(alone)}?)"
        )
        told = True
    is_mapped = isinstance(first, ipaddress.IPv6Address) and first.ipv4_mapped is not None
    if is_mapped or not names.is_without_zeros(text):
        yield f"{path}: non-standard CIDR value {json.dumps(text)} is invalid: use {_quoted(whole)}"
    elif not told and str(whole) != text:
        yield f"{path}: IPv6 CIDR value {json.dumps(text)} should be in RFC 5952 canonical format ({_quoted(whole)})"


def _quoted(value: object) -> str:
    return f'"{value}"'
