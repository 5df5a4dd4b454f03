"""The parameters of a URL, read as Go reads them (``apimachinery/pkg/runtime/conversion.go``)."""

from __future__ import annotations

import urllib.parse

from kemu.errors import BadRequest


class Query:
    __slots__ = ("values",)

    def __init__(self, text: str) -> None:
        self.values: dict[str, list[str]] = {}
        if text:
            try:
                pairs = urllib.parse.parse_qsl(text, keep_blank_values=True, max_num_fields=1000)
            except ValueError as error:
                raise BadRequest(f"the query cannot be read: {error}") from None
            for name, value in pairs:
                self.values.setdefault(name, []).append(value)

    def __contains__(self, name: str) -> bool:
        return name in self.values

    def text(self, name: str) -> str:
        found = self.values.get(name)
        return found[0] if found else ""

    def first(self) -> dict[str, str]:
        """All parameters, each with its first value."""
        return {name: values[0] for name, values in self.values.items()}

    def texts(self, name: str) -> list[str]:
        return self.values.get(name, [])

    def flag(self, name: str) -> bool | None:
        """None: it is not there. ``Convert_Slice_string_To_bool``: anything but ``0`` and ``false`` is true."""
        found = self.values.get(name)
        if not found:
            return None
        return not (found[0] == "0" or found[0].lower() == "false")

    def number(self, name: str) -> int | None:
        """None: it is not there. Raises :class:`kemu.errors.BadRequest`."""
        if name not in self.values:
            return None
        text = self.text(name)
        digits = text[1:] if text[:1] in ("+", "-") else text
        if not digits.isascii() or not digits.isdigit():
            raise BadRequest(f'strconv.ParseInt: parsing "{text}": invalid syntax')
        if len(digits) > 19 or not -(1 << 63) <= int(text) < 1 << 63:
            raise BadRequest(f'strconv.ParseInt: parsing "{text}": value out of range')
        return int(text)
