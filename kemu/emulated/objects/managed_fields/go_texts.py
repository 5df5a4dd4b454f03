"""JSON values as Go prints them, for the texts of errors."""

from __future__ import annotations

from kemu.emulated.objects.managed_fields import fieldsets
from kemu.emulated.objects.plain import Json


def type_of(value: Json) -> str:
    """``%T``."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, str):
        return "string"
    if isinstance(value, float):
        return "float64"
    if isinstance(value, int):
        return "int64"
    return "[]interface {}" if isinstance(value, list) else "map[string]interface {}"


def syntax(value: Json) -> str:
    """``%#v``."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return fieldsets.write(value)
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(syntax(one) for one in value)}}}"
    if isinstance(value, dict):
        inner = ", ".join(f"{fieldsets.write(name)}:{syntax(value[name])}" for name in sorted(value))
        return f"map[string]interface {{}}{{{inner}}}"
    return "interface {}(nil)" if value is None else str(value)


def plain(value: Json) -> str:
    """``%v``."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{' '.join(plain(one) for one in value)}]"
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{plain(value[name])}' for name in sorted(value))}]"
    return "<nil>" if value is None else str(value)
