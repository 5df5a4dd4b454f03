"""Environments and programs: what callers declare, give and get."""

from __future__ import annotations

import pytest

from kemu.emulated import cel
from kemu.emulated.cel import types

SCHEMA = {
    "type": "object",
    "properties": {
        "replicas": {"type": "integer"},
        "names": {"type": "array", "maxItems": 4, "items": {"type": "string", "maxLength": 10}},
        "since": {"type": "string", "format": "date-time"},
    },
}


def _environment() -> cel.Environment:
    declared = cel.schemas.declared(SCHEMA)
    assert declared is not None
    return cel.Environment({"self": declared, "oldSelf": types.optional_of(declared)})


def test_a_program_is_evaluated_many_times_and_keeps_nothing() -> None:
    program = _environment().compile("self.names.map(n, n + '!')")
    for names in (["a"], ["b", "c"], []):
        value, cost = program.evaluate({"self": {"names": names}})
        assert value == [f"{name}!" for name in names]
        assert cost == program.evaluate({"self": {"names": names}})[1]


def test_json_is_read_through_the_schema() -> None:
    program = _environment().compile("self.since < timestamp('2025-01-01T00:00:00Z')")
    assert program.evaluate({"self": {"since": "2024-06-01T00:00:00Z"}})[0] is True


def test_an_optional_variable_is_none_or_some() -> None:
    program = _environment().compile("oldSelf.optMap(old, old.replicas).orValue(-1)")
    assert program.evaluate({"self": {}, "oldSelf": None})[0] == -1
    assert program.evaluate({"self": {}, "oldSelf": {"replicas": 3}})[0] == 3


def test_a_wanted_type() -> None:
    environment = _environment()
    assert environment.compile("self.replicas > 1", wants=(types.BOOL,)).type == types.BOOL
    with pytest.raises(cel.CompileError, match="must evaluate to bool"):
        environment.compile("self.replicas", wants=(types.BOOL,))


def test_mistakes_have_places() -> None:
    with pytest.raises(cel.CompileError) as caught:
        _environment().compile("self.replica > 1 &&\n  x")
    assert [(issue.line, issue.column) for issue in caught.value.issues] == [(1, 4), (2, 2)]
    assert str(caught.value) == (
        "ERROR: <input>:1:5: undefined field 'replica'\n | self.replica > 1 &&\n | ....^\n"
        "ERROR: <input>:2:3: undeclared reference to 'x' (in container '')\n |   x\n | ..^"
    )


def test_a_constant_that_is_no_value() -> None:
    with pytest.raises(cel.errors.InstantiationError, match="type conversion error from 'string' to 'int'"):
        _environment().compile("int('x') > 0")


def test_failures_and_budgets_know_the_cost() -> None:
    program = _environment().compile("self.names.map(n, n)[9] == 'x'")
    with pytest.raises(cel.EvaluationError, match="index out of bounds: 9") as caught:
        program.evaluate({"self": {"names": ["a"]}})
    assert caught.value.cost == 19
    with pytest.raises(cel.BudgetExceeded, match="operation cancelled: actual cost limit exceeded"):
        program.evaluate({"self": {"names": ["a"]}}, limit=5)
    assert program.evaluate({"self": {"names": list("abcdefghix")}}, limit=None)[0] is True


def test_an_estimate_follows_declared_sizes() -> None:
    assert _environment().compile("self.names.all(n, n != '')").estimate() == (3, 19)
    unbounded = cel.Environment({"self": types.DYN}).compile("self.names.all(n, n != '')").estimate()
    assert unbounded.high == (1 << 64) - 1


def test_lazy_fields_are_computed_once_and_only_if_asked_for() -> None:
    asked: list[str] = []

    def field(name: str) -> object:
        asked.append(name)
        if name == "broken":
            raise cel.EvaluationError("it is broken")
        return 7

    lazy = cel.LazyFields("variables", {name: lambda name=name: field(name) for name in ("a", "b", "broken")})  # type: ignore[misc]
    declared = types.object_of("variables", dict.fromkeys(("a", "b", "broken"), types.DYN))
    environment = cel.Environment({"variables": declared})
    assert environment.compile("variables.a + variables.a").evaluate({"variables": lazy}) == (14, 5)
    assert asked == ["a"]
    with pytest.raises(cel.EvaluationError, match="it is broken"):
        environment.compile("variables.broken == 1").evaluate({"variables": lazy})
    assert environment.compile("variables.broken == 1 || true").evaluate({"variables": lazy})[0] is True
    assert asked == ["a", "broken"]


def test_an_environment_is_extended() -> None:
    environment = _environment().extend({"limit": types.INT})
    assert environment.compile("self.replicas < limit").evaluate({"self": {"replicas": 1}, "limit": 2})[0] is True
    with pytest.raises(cel.CompileError, match="undeclared reference to 'limit'"):
        _environment().compile("limit")


def test_variables_have_qualified_names() -> None:
    environment = cel.Environment({"authorizer": cel.authorizers.AUTHORIZER, "authorizer.own": types.INT})
    assert environment.compile("authorizer.own + 1").evaluate({"authorizer.own": 1})[0] == 2


def test_the_authorizer_is_asked_by_expressions() -> None:
    asked: list[cel.authorizers.Access] = []

    def decide(access: cel.authorizers.Access) -> cel.authorizers.Decision:
        asked.append(access)
        return cel.authorizers.Decision("allow" if access.verb == "get" else "deny", "because")

    environment = cel.Environment({"authorizer": cel.authorizers.AUTHORIZER})
    text = (
        "authorizer.serviceAccount('ns', 'sa').group('apps').resource('deployments').name('x').check('get').allowed()"
    )
    value, cost = environment.compile(text).evaluate({"authorizer": cel.authorizers.Authorizer(decide)})
    assert (value, cost) == (True, 350_006)
    user = "system:serviceaccount:ns:sa"
    assert asked == [cel.authorizers.Access(user, "get", group="apps", resource="deployments", name="x")]


def test_constructed_objects_become_json() -> None:
    environment = cel.Environment({}, libraries=["mutation"])
    text = "Object{spec: Object.spec{replicas: 3, list: [Object.spec.list{at: timestamp('2024-01-01T00:00:00Z')}]}}"
    program = environment.compile(text)
    assert program.type == types.abstract("Object")
    assert cel.plain(program.evaluate({})[0]) == {"spec": {"replicas": 3, "list": [{"at": "2024-01-01T00:00:00Z"}]}}
    patch = environment.compile("[JSONPatch{op: 'add', path: '/a', value: {'b': 1u}}]")
    assert cel.plain(patch.evaluate({})[0]) == [{"op": "add", "path": "/a", "value": {"b": 1}}]


def test_other_environments_construct_nothing() -> None:
    with pytest.raises(cel.CompileError, match="undeclared reference to 'Object'"):
        cel.Environment({}).compile("Object{}")
    with pytest.raises(cel.CompileError, match="undeclared reference to 'bind'"):
        cel.Environment({}).compile("cel.bind(x, 1, x)")


@pytest.mark.parametrize(
    ("name", "identifier"),
    [
        ("a", "a"),
        ("a.b", "a__dot__b"),
        ("a-b/c", "a__dash__b__slash__c"),
        ("__x", "__underscores__x"),
        ("in", "__in__"),
    ],
)
def test_names_are_escaped(name: str, identifier: str) -> None:
    assert cel.schemas.escape(name) == identifier
    assert cel.schemas.unescape(identifier) == name


def test_names_that_are_no_identifiers() -> None:
    assert [cel.schemas.escape(name) for name in ("", "1a", "a b", "ä")] == [None] * 4
    assert cel.schemas.unescape("a__foo__b") is None


def test_sizes_of_schemas() -> None:
    declared = cel.schemas.declared(SCHEMA, root=True)
    assert declared is not None
    assert declared.fields is not None
    assert sorted(declared.fields) == ["apiVersion", "kind", "metadata", "names", "replicas", "since"]
    assert declared.fields["names"].max_elements == 4
    assert declared.fields["names"].parameters[0].max_elements == 40
    assert declared.fields["since"].max_elements == 32
    assert cel.schemas.max_cardinality(declared) == 3 * 1024 * 1024 // 3
    assert cel.schemas.declared({"x-kubernetes-preserve-unknown-fields": True}) is None
