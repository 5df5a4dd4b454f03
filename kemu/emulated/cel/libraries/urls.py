"""URLs as Go's package net/url reads them."""

from __future__ import annotations

import re

from kemu.emulated.cel import types
from kemu.emulated.cel.declarations import Functions
from kemu.emulated.cel.libraries import addresses
from kemu.emulated.cel.numbers import quoted
from kemu.emulated.cel.types import BOOL, STRING
from kemu.emulated.cel.values import NO_OVERLOAD, Error, Opaque, Value

_URL = types.abstract("kubernetes.URL")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_PORT = re.compile(r"(?::[0-9]*)?", re.ASCII)
_USER = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_ESCAPE = re.compile(r"%[0-9a-fA-F]{2}")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~")
_IN_HOST = _UNRESERVED | frozenset("!$&'()*+,;=:[]<>\"")
_IN_PATH = _UNRESERVED | frozenset("$&+,/:;=@")
_IN_FRAGMENT = _IN_PATH | frozenset("?!()*")
_IN_USER = _UNRESERVED | frozenset("$&+,;=")


class _Malformed(Exception):
    """Go's reason why a text is no URL."""


class Url(Opaque):
    """A parsed URL."""

    __slots__ = ("forced", "fragment", "host", "omits_host", "opaque", "path", "query", "raw_path", "scheme", "user")
    type_name = "kubernetes.URL"
    constant_equality = True

    def __init__(self) -> None:
        self.scheme = self.opaque = self.host = self.query = self.fragment = self.raw_path = ""
        self.user: str | None = None
        self.path = b""
        self.forced = self.omits_host = False

    def equal(self, other: Value) -> Value:
        if type(other) is not Url:
            return other if type(other) is Error else NO_OVERLOAD
        return str(self) == str(other)

    @property
    def escaped_path(self) -> str:
        if self.raw_path and _is_encoded(self.raw_path):
            return self.raw_path
        return "*" if self.path == b"*" else _escape(self.path, _IN_PATH)

    def __str__(self) -> str:
        parts = [f"{self.scheme}:"] if self.scheme else []
        if self.opaque:
            parts.append(self.opaque)
        else:
            named = self.scheme or self.host or self.user is not None
            bare = self.omits_host and not self.host and self.user is None
            if named and not bare:
                if self.host or self.path or self.user is not None:
                    parts.append("//")
                parts.extend([f"{self.user}@"] if self.user is not None else [])
                parts.append(_escape(self.host.encode(), _IN_HOST))
            path = self.escaped_path
            if path and path[0] != "/" and self.host:
                parts.append("/")
            if not parts and ":" in path.partition("/")[0]:
                parts.append("./")
            parts.append(path)
        if self.forced or self.query:
            parts.append(f"?{self.query}")
        if self.fragment:
            parts.append(f"#{self.fragment}")
        return "".join(parts)


def _escape(data: bytes, kept: frozenset[str]) -> str:
    return "".join(chr(byte) if chr(byte) in kept else f"%{byte:02X}" for byte in data)


def _is_encoded(path: str) -> bool:
    return all(character in _IN_PATH or character in "!$&'()*+,;=:@[]%" for character in path)


def _unescape(text: str, *, host: bool = False, zone: bool = False) -> bytes:
    """The bytes that an escaped text states."""
    at, result = 0, bytearray()
    while at < len(text):
        character = text[at]
        if character == "%":
            escape = text[at : at + 3]
            if not _ESCAPE.fullmatch(escape):
                raise _Malformed(f"invalid URL escape {quoted(escape)}")
            byte = int(escape[1:], 16)
            if host and byte < 0x80 and escape != "%25":
                raise _Malformed(f"invalid URL escape {quoted(escape)}")
            if zone and escape != "%25" and byte != 0x20 and chr(byte) not in _IN_HOST:
                raise _Malformed(f"invalid URL escape {quoted(escape)}")
            result.append(byte)
            at += 3
            continue
        if (host or zone) and character.isascii() and character not in _IN_HOST:
            raise _Malformed(f"invalid character {quoted(character)} in host name")
        result.extend(character.encode())
        at += 1
    return bytes(result)


def _host(scheme: str, host: str) -> str:
    bracket = host.rfind("[")
    if bracket > 0:
        raise _Malformed("invalid IP-literal")
    if bracket == 0:
        closing = host.rfind("]")
        if closing < 0:
            raise _Malformed("missing ']' in host")
        port = host[closing + 1 :]
        if not _PORT.fullmatch(port):
            raise _Malformed(f"invalid port {quoted(port)} after host")
        inner, percent, zone = host[1:closing].partition("%25")
        name = _unescape(inner, host=True)
        if percent:
            name += _unescape("%25" + zone, zone=True)
        shown = name.decode(errors="replace")
        try:
            parsed, _ = addresses._address(shown)
        except addresses._Malformed as malformed:
            raise _Malformed(f"invalid host: {malformed}") from None
        if parsed.version == 4:
            raise _Malformed("invalid IP-literal")
        return f"[{shown}]{port}"
    first = host.find(":")
    if first >= 0:
        strict = scheme in ("http", "https")
        port = host[first if strict else host.rfind(":") :]
        if not _PORT.fullmatch(port):
            raise _Malformed(f"invalid port {quoted(port)} after host")
    return _unescape(host, host=True).decode(errors="replace")


def _authority(url: Url, authority: str) -> None:
    user, at, host = authority.rpartition("@")
    url.host = _host(url.scheme, host)
    if not at:
        return
    if not _USER.fullmatch(user):
        raise _Malformed("net/url: invalid userinfo")
    name, colon, password = user.partition(":")
    url.user = _escape(_unescape(name), _IN_USER)
    if colon:
        url.user += ":" + _escape(_unescape(password), _IN_USER)


def _parse(text: str, request: bool) -> Url:
    if any(ord(character) < 0x20 or character == "\x7f" for character in text):
        raise _Malformed("net/url: invalid control character in URL")
    if not text and request:
        raise _Malformed("empty url")
    url = Url()
    if text == "*":
        url.path = b"*"
        return url
    rest = text
    if text.startswith(":"):
        raise _Malformed("missing protocol scheme")
    scheme = _SCHEME.match(text)
    if scheme is not None:
        url.scheme, rest = scheme[0][:-1].lower(), text[scheme.end() :]
    if rest.endswith("?") and rest.count("?") == 1:
        url.forced, rest = True, rest[:-1]
    else:
        rest, _, url.query = rest.partition("?")
    if not rest.startswith("/"):
        if url.scheme:
            url.opaque = rest
            return url
        if request:
            raise _Malformed("invalid URI for request")
        if ":" in rest.partition("/")[0]:
            raise _Malformed("first path segment in URL cannot contain colon")
    if (url.scheme or (not request and not rest.startswith("///"))) and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        _authority(url, authority)
    elif url.scheme and rest.startswith("/"):
        url.omits_host = True
    url.path = _unescape(rest)
    url.raw_path = "" if rest == _escape(url.path, _IN_PATH) else rest
    return url


def request_error(text: str) -> str | None:
    """What Go's ParseRequestURI says of a text that is no absolute URI or path, or None."""
    try:
        _parse(text, True)
    except _Malformed as malformed:
        return f"parse {quoted(text)}: {malformed}"
    return None


def _to_url(text: Value) -> Value:
    wrong = request_error(text)
    if wrong is not None:
        return Error(f"URL parse error during conversion from string: {wrong}")
    before, _, fragment = text.partition("#")
    try:
        url = _parse(before, False)
        url.fragment = _escape(_unescape(fragment), _IN_FRAGMENT)
    except _Malformed as malformed:
        return Error(f"URL parse error during conversion from string: parse {quoted(text)}: {malformed}")
    return url


def _host_and_port(host: str) -> tuple[str, str]:
    colon = host.rfind(":")
    port = ""
    if colon >= 0 and _PORT.fullmatch(host[colon:]):
        host, port = host[:colon], host[colon + 1 :]
    return (host[1:-1] if host.startswith("[") and host.endswith("]") else host), port


def _query(url: Value) -> Value:
    result: dict[str, list[str]] = {}
    for part in url.query.split("&"):
        if ";" in part or not part:
            continue
        key, _, value = part.partition("=")
        try:
            name, content = (_unescape(piece.replace("+", " ")).decode(errors="replace") for piece in (key, value))
        except _Malformed:
            continue
        result.setdefault(name, []).append(content)
    return result


def declare(functions: Functions) -> None:
    functions.free("url", "string_to_url", (STRING,), _URL, _to_url)
    member = functions.member
    member("getScheme", "url_get_scheme", (_URL,), STRING, lambda url: url.scheme)
    member("getHost", "url_get_host", (_URL,), STRING, lambda url: url.host)
    member("getHostname", "url_get_hostname", (_URL,), STRING, lambda url: _host_and_port(url.host)[0])
    member("getPort", "url_get_port", (_URL,), STRING, lambda url: _host_and_port(url.host)[1])
    member("getEscapedPath", "url_get_escaped_path", (_URL,), STRING, lambda url: url.escaped_path)
    member("getQuery", "url_get_query", (_URL,), types.map_of(STRING, types.list_of(STRING)), _query)
    functions.free("isURL", "is_url_string", (STRING,), BOOL, lambda text: request_error(text) is None)
