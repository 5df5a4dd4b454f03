"""Puts recorded cases to kemu's CEL and says in which points it answers otherwise than Kubernetes."""

from __future__ import annotations

from typing import Any

from kemu.emulated import cel
from kemu.emulated.cel import numbers, values
from kemu.emulated.cel.libraries.addresses import Cidr, Ip
from kemu.emulated.cel.libraries.quantities import Quantity
from kemu.emulated.cel.libraries.semvers import Semver
from kemu.emulated.cel.libraries.urls import Url
from kemu.emulated.cel.parsing import stacks
from kemu.emulated.cel.times import Duration, Timestamp


def decide(access: cel.authorizers.Access) -> cel.authorizers.Decision:
    """The recorder's authorizer: it allows the verb get, fails for fail, denies deny and has no opinion of others."""
    user = access.user or "alice"
    asked = f"{access.group}/{access.resource}/{access.subresource} {access.namespace}/{access.name} {access.path}"
    reason = f"{user} {asked} {access.verb}"
    match access.verb:
        case "get":
            return cel.authorizers.Decision("allow", reason)
        case "deny":
            return cel.authorizers.Decision("deny", reason)
        case "fail":
            return cel.authorizers.Decision("no opinion", "", f"broken: {reason}")
    return cel.authorizers.Decision("no opinion", reason)


def answer(case: dict[str, Any]) -> dict[str, Any]:
    """kemu's answer in the form of the recorder."""
    declared: dict[str, cel.types.Type] = dict.fromkeys(case.get("variables", {}), cel.types.DYN)
    given: dict[str, Any] = dict(case.get("variables", {}))
    root: cel.types.Type | None = None
    if "schema" in case:
        root = cel.schemas.declared(case["schema"], root=case.get("root", False))
        assert root is not None
        old = cel.types.optional_of(root) if case.get("optionalOldSelf") else root
        declared |= {"self": root, "oldSelf": old}
        given["self"] = case.get("self")
        if case.get("oldSelf") is not None or case.get("optionalOldSelf"):
            given["oldSelf"] = case.get("oldSelf")
    libraries = set(case.get("libraries", ()))
    if "authorizer" in libraries:
        declared["authorizer"] = cel.authorizers.AUTHORIZER
        given["authorizer"] = cel.authorizers.Authorizer(decide)
    chosen = ["bindings"] if "bindings" in libraries else []
    if libraries & {"jsonpatch", "mutation"}:
        chosen.append("mutation")
    environment = cel.Environment(declared, libraries=chosen)  # type: ignore[arg-type]
    try:
        program = environment.compile(case["expression"])
    except cel.errors.InstantiationError as error:
        return {"program": str(error)}
    except cel.CompileError as error:
        return {"issues": str(error).replace("selfType", "self")}
    low, high = program.estimate()
    result: dict[str, Any] = {"type": str(program.type), "low": low, "high": high}
    if case.get("compileOnly"):
        return result
    try:
        value, cost = program.evaluate(given, case.get("limit") or cel.PER_CALL_LIMIT)
    except cel.EvaluationError as error:
        return {**result, "error": str(error), "cost": error.cost}
    with stacks.room():
        return {**result, "value": show(value), "cost": cost}


def show(value: Any) -> str:
    """A value so that its type is seen, as the recorder writes it."""
    kind = type(value)
    if kind is bool:
        return "true" if value else "false"
    if value is None:
        return "NULL_VALUE"
    if kind is values.Uint:
        return f"{int(value)}u"
    if kind is int:
        return str(value)
    if kind is float:
        return f"double {numbers.shortest(value)}"
    if kind is str:
        return _ascii(value)
    if kind is bytes:
        return f"bytes {value.hex()}"
    if kind is Duration:
        return f"duration {value.nanoseconds}"
    if kind is Timestamp:
        return f"timestamp {value.seconds}.{value.nanoseconds:09d}"
    if kind is values.Optional:
        return f"optional.of({show(value.value)})" if value.present else "optional.none()"
    for type_, name in ((Quantity, "quantity"), (Semver, "semver"), (Ip, "ip"), (Cidr, "cidr"), (Url, "url")):
        if kind is type_:
            return f"{name} {value}"
    if kind is values.TypeValue:
        return f"type {value.name}"
    if values.is_list(value):
        return "[" + ", ".join(map(show, value)) + "]"
    if values.is_map(value):
        return "{" + ", ".join(sorted(f"{show(key)}: {show(values.find(value, key)[0])}" for key in value)) + "}"
    if isinstance(value, values.Constructed):
        return _constructed(value)
    return str(values.type_name(value))


def _constructed(value: values.Constructed) -> str:
    if value.type_name == "JSONPatch":
        op, path, source = (_ascii(value.fields.get(name, "")) for name in ("op", "path", "from"))
        shown = show(value.fields["value"]) if "value" in value.fields else "none"
        return f"patch {op} {path} {source} {shown}"
    return f"{value.type_name} {show(cel.plain(value))}"


def _ascii(text: str) -> str:
    """Go's QuoteToASCII."""
    quoted = numbers.quoted(text)
    return "".join(
        character
        if character.isascii()
        else f"\\u{ord(character):04x}"
        if ord(character) < 0x10000
        else f"\\U{ord(character):08x}"
        for character in quoted
    )


def differences(case: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """The points in which kemu differs: a line each."""
    actual = answer(case)
    keys = ("issues", "program", "type", "value", "error", "cost", "low", "high")
    if "issues" in expected or "program" in expected:
        keys = ("issues", "program")
    return [
        f"{key}: {expected.get(key)!r} is expected, not {actual.get(key)!r}"
        for key in keys
        if actual.get(key) != expected.get(key)
    ]
