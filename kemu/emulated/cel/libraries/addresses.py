"""IP addresses and CIDRs, with the messages of Go's package netip."""

from __future__ import annotations

import re
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address

from kemu.emulated.cel import types
from kemu.emulated.cel.declarations import Functions
from kemu.emulated.cel.numbers import quoted
from kemu.emulated.cel.types import BOOL, INT, STRING
from kemu.emulated.cel.values import NO_OVERLOAD, Error, Opaque, Value

_IP = types.opaque("net.IP")
_CIDR = types.opaque("net.CIDR")
_HEX = re.compile("[0-9a-fA-F]*")


class Ip(Opaque):
    """An address: its bits as a number, and the version."""

    __slots__ = ("number", "version")
    type_name = "net.IP"
    constant_equality = True

    def __init__(self, number: int, version: int) -> None:
        self.number = number
        self.version = version

    @property
    def bits(self) -> int:
        return 32 if self.version == 4 else 128

    @property
    def extent(self) -> int:  # type: ignore[override]
        return self.bits // 8

    def equal(self, other: Value) -> Value:
        if type(other) is not Ip:
            return other if type(other) is Error else NO_OVERLOAD
        return (self.number, self.version) == (other.number, other.version)

    def __str__(self) -> str:
        return str(IPv4Address(self.number) if self.version == 4 else IPv6Address(self.number))

    def within(self, network: int, length: int, version: int) -> bool:
        """Whether the first `length` bits are those of `network`."""
        return self.version == version and (self.number ^ network) >> (self.bits - length) == 0


class Cidr(Opaque):
    """An address and the length of a prefix."""

    __slots__ = ("address", "length")
    type_name = "net.CIDR"
    constant_equality = True

    def __init__(self, address: Ip, length: int) -> None:
        self.address = address
        self.length = length

    @property
    def extent(self) -> int:  # type: ignore[override]
        return -(-self.length // 8)

    def equal(self, other: Value) -> Value:
        if type(other) is not Cidr:
            return other if type(other) is Error else NO_OVERLOAD
        return self.address.equal(other.address) is True and self.length == other.length

    def __str__(self) -> str:
        return f"{self.address}/{self.length}"


class _Malformed(Exception):
    """Go's message for a text that is no address."""


def _fail(text: str, message: str, at: str = "") -> _Malformed:
    return _Malformed(f"ParseAddr({quoted(text)}): {message}" + (f" (at {quoted(at)})" if at else ""))


def _address(text: str) -> tuple[Ip, bool]:
    """The address that a text states, and whether with a zone."""
    for character in text:
        if character == ".":
            return Ip(_four(text, text), 4), False
        if character == ":":
            return _six(text)
        if character == "%":
            raise _fail(text, "missing IPv6 address")
    raise _fail(text, "unable to parse IP")


def _four(text: str, part: str) -> int:
    fields = [0]
    digits = 0
    for index, character in enumerate(part):
        if character in "0123456789":
            if digits == 1 and fields[-1] == 0:
                raise _fail(text, "IPv4 field has octet with leading zero")
            fields[-1] = fields[-1] * 10 + int(character)
            digits += 1
            if fields[-1] > 255:
                raise _fail(text, "IPv4 field has value >255")
        elif character == ".":
            if index in (0, len(part) - 1) or part[index - 1] == ".":
                raise _fail(text, "IPv4 field must have at least one digit", part[index:])
            if len(fields) == 4:
                raise _fail(text, "IPv4 address too long")
            fields.append(0)
            digits = 0
        else:
            raise _fail(text, "unexpected character", part[index:])
    if len(fields) < 4:
        raise _fail(text, "IPv4 address too short")
    return int.from_bytes(bytes(fields), "big")


def _six(text: str) -> tuple[Ip, bool]:
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        raise _fail(text, "zone must be a non-empty string")
    ellipsis: int | None = None
    if rest.startswith("::"):
        ellipsis, rest = 0, rest[2:]
        if not rest:
            return Ip(0, 6), bool(zone)
    octets: list[int] = []
    while len(octets) < 16:
        digits = _hex_digits(rest)
        if len(digits) > 4:
            # The fifth digit is refused, unless the number was too large before it.
            raise _fail(text, "each group must have 4 or less digits", rest)
        if not digits:
            raise _fail(text, "each colon-separated field must have at least one digit", rest)
        behind = rest[len(digits) :]
        if behind.startswith("."):
            if ellipsis is None and len(octets) != 12:
                message = "embedded IPv4 address must replace the final 2 fields of the address"
                raise _fail(text, message, rest)
            if len(octets) + 4 > 16:
                raise _fail(text, "too many hex fields to fit an embedded IPv4 at the end of the address", rest)
            octets.extend(_four(text, rest).to_bytes(4, "big"))
            rest = ""
            break
        octets.extend(int(digits, 16).to_bytes(2, "big"))
        rest = behind
        if not rest:
            break
        if rest[0] != ":":
            raise _fail(text, "unexpected character, want colon", rest)
        if len(rest) == 1:
            raise _fail(text, "colon must be followed by more characters", rest)
        rest = rest[1:]
        if rest[0] == ":":
            if ellipsis is not None:
                raise _fail(text, "multiple :: in address", rest)
            ellipsis, rest = len(octets), rest[1:]
            if not rest:
                break
    if rest:
        raise _fail(text, "trailing garbage after address", rest)
    if len(octets) < 16:
        if ellipsis is None:
            raise _fail(text, "address string too short")
        octets[ellipsis:ellipsis] = [0] * (16 - len(octets))
    elif ellipsis is not None:
        raise _fail(text, "the :: must expand to at least one field of zeros")
    return Ip(int.from_bytes(bytes(octets), "big"), 6), bool(zone)


def _hex_digits(text: str) -> str:
    found = _HEX.match(text)
    return found[0] if found is not None else ""


def _is_mapped(address: Ip) -> bool:
    return address.version == 6 and address.number >> 32 == 0xFFFF


def parse_ip(text: str) -> Ip | Error:
    """The address, or Kubernetes' message."""
    try:
        address, zoned = _address(text)
    except _Malformed as malformed:
        return Error(f"IP Address {quoted(text)} parse error during conversion from string: {malformed}")
    if zoned:
        return Error(f"IP address {quoted(text)} with zone value is not allowed")
    if _is_mapped(address):
        return Error(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return address


def parse_cidr(text: str) -> Cidr | Error:
    """The prefix, or Kubernetes' message."""
    head, slash, length = text.rpartition("/")
    message = ""
    address, zoned = Ip(0, 4), False
    if not slash:
        message = "no '/'"
    else:
        try:
            address, zoned = _address(head)
        except _Malformed as malformed:
            message = str(malformed)
    if not message:
        if zoned:
            message = "IPv6 zones cannot be present in a prefix"
        elif not length.isascii() or not length.isdigit() or (len(length) > 1 and length[0] == "0") or len(length) > 18:
            message = f"bad bits after slash: {quoted(length)}"
        elif int(length) > address.bits:
            message = "prefix length out of range"
    if message:
        prefix = f"netip.ParsePrefix({quoted(text)}): {message}"
        return Error(f"network address parse error during conversion from string: {prefix}")
    if _is_mapped(address):
        return Error(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return Cidr(address, int(length))


def _to_cidr(text: Value) -> Value:
    parsed = parse_cidr(text)
    if isinstance(parsed, Error):
        return Error(f"network address parse error during conversion from string: {parsed.message}")
    return parsed


def _is_canonical(text: Value) -> Value:
    parsed = parse_ip(text)
    return parsed if isinstance(parsed, Error) else str(parsed) == text


def _is_link_local_unicast(address: Ip) -> bool:
    return address.within(0xA9FE0000, 16, 4) or address.within(0xFE80 << 112, 10, 6)


def _is_loopback(address: Ip) -> bool:
    return address.within(0x7F000000, 8, 4) or (address.version == 6 and address.number == 1)


def _is_link_local_multicast(address: Ip) -> bool:
    return address.within(0xE0000000, 24, 4) or (address.version == 6 and address.number >> 112 & 0xFF0F == 0xFF02)


def _is_global_unicast(address: Ip) -> bool:
    multicast = address.within(0xE0000000, 4, 4) or address.within(0xFF << 120, 8, 6)
    broadcast = address.version == 4 and address.number == 0xFFFFFFFF
    return not (
        address.number == 0 or broadcast or multicast or _is_loopback(address) or _is_link_local_unicast(address)
    )


def _contains_ip(network: Value, address: Value) -> Value:
    if type(address) is not Ip:
        # Kubernetes asks whether the network is the error, so that of the address is lost.
        return NO_OVERLOAD
    return address.within(network.address.number, network.length, network.address.version)


def _contains_cidr(network: Value, other: Value) -> Value:
    if type(other) is not Cidr:
        return other if type(other) is Error else NO_OVERLOAD
    shared = min(network.length, other.length)
    return network.length <= other.length and other.address.within(
        network.address.number, shared, network.address.version
    )


def _masked(network: Value) -> Value:
    rest = network.address.bits - network.length
    return Cidr(Ip(network.address.number >> rest << rest, network.address.version), network.length)


_TESTS: dict[str, tuple[str, Callable[[Ip], bool]]] = {
    "isUnspecified": ("ip_is_unspecified", lambda address: address.number == 0),
    "isLoopback": ("ip_is_loopback", _is_loopback),
    "isLinkLocalMulticast": ("ip_is_link_local_multicast", _is_link_local_multicast),
    "isLinkLocalUnicast": ("ip_is_link_local_unicast", _is_link_local_unicast),
    "isGlobalUnicast": ("ip_is_global_unicast", _is_global_unicast),
}


def declare(functions: Functions) -> None:
    free, member = functions.free, functions.member
    free("ip", "string_to_ip", (STRING,), _IP, parse_ip)
    member("family", "ip_family", (_IP,), INT, lambda address: address.version)
    free("ip.isCanonical", "ip_is_canonical", (STRING,), BOOL, _is_canonical)
    for name, (overload, test) in _TESTS.items():
        member(name, overload, (_IP,), BOOL, test)
    free("isIP", "is_ip", (STRING,), BOOL, lambda text: not isinstance(parse_ip(text), Error))
    free("string", "ip_to_string", (_IP,), STRING, str)
    free("cidr", "string_to_cidr", (STRING,), _CIDR, _to_cidr)
    member(
        "containsIP",
        "cidr_contains_ip_string",
        (_CIDR, STRING),
        BOOL,
        lambda net, text: _contains_ip(net, parse_ip(text)),
    )
    member("containsIP", "cidr_contains_ip_ip", (_CIDR, _IP), BOOL, _contains_ip)
    member(
        "containsCIDR",
        "cidr_contains_cidr_string",
        (_CIDR, STRING),
        BOOL,
        lambda net, text: _contains_cidr(net, _to_cidr(text)),
    )
    member("containsCIDR", "cidr_contains_cidr", (_CIDR, _CIDR), BOOL, _contains_cidr)
    member("ip", "cidr_ip", (_CIDR,), _IP, lambda network: network.address)
    member("prefixLength", "cidr_prefix_length", (_CIDR,), INT, lambda network: network.length)
    member("masked", "cidr_masked", (_CIDR,), _CIDR, _masked)
    free("isCIDR", "is_cidr", (STRING,), BOOL, lambda text: not isinstance(parse_cidr(text), Error))
    free("string", "cidr_to_string", (_CIDR,), STRING, str)
