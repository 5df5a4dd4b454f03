"""Definitions and objects about which a real kube-apiserver was asked (see `record.py`).

Each definition has a schema, and objects, each with the steps of its life: ``create``, ``update``, ``apply``, ``get``, or
``schema``, which changes the definition.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

GROUP = "cases.example.com"

Schema = dict[str, Any]
Step = dict[str, Any]


@dataclass
class Definition:
    schema: Schema
    subresources: dict[str, Any] | None = None
    objects: dict[str, list[Step]] = field(default_factory=dict)


def kind_of(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("-")).replace("-", "")


def manifest(name: str, key: str, content: dict[str, Any]) -> dict[str, Any]:
    found = {"apiVersion": f"{GROUP}/v1", "kind": kind_of(name), **content}
    found["metadata"] = {"name": key, **content.get("metadata", {})}
    return found


DEFINITIONS: dict[str, Definition] = {}


def _string(**more: Any) -> Schema:
    return {"type": "string", **more}


def _object(properties: Schema | None = None, **more: Any) -> Schema:
    return {"type": "object", **({"properties": properties} if properties is not None else {}), **more}


def _array(items: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": items, **more}


def _spec(v: Schema, **more: Any) -> Schema:
    return _object({"spec": _object({"v": v})}, **more)


# Definitions that are judged by themselves ----------------------------------------------------------------------------

_ROOTS: dict[str, Schema] = {
    "notype": {"properties": {"spec": _object({})}},
    "arrayroot": _array(_string()),
    "stringroot": _string(),
    "nullableroot": _object({}, nullable=True),
    "additionalroot": _object(additionalProperties=_string()),
    "metadatanames": _object({"metadata": _object({"name": _string(pattern="^a"), "generateName": _string()})}),
    "metadatalabels": _object({"metadata": _object({"labels": _object({})})}),
    "metadatarequired": _object({"metadata": _object({"name": _string()}, required=["name"])}),
    "metadatadescription": _object({"metadata": _object({}, description="x")}),
    "metadatastring": _object({"metadata": _string()}),
    "kindinteger": _object({"kind": {"type": "integer"}, "apiVersion": {"type": "boolean"}}),
    "kinddefault": _object({"kind": _string(default="A"), "apiVersion": _string(default="b")}),
    "metadatadefault": _object({"metadata": _object({"name": _string(default="x")})}),
    "rootdefault": _object({"spec": _object({})}, default={"spec": {}}),
    "preserveroot": _object({}, **{"x-kubernetes-preserve-unknown-fields": True}),
    "embeddedroot": _object({"spec": _object({})}, **{"x-kubernetes-embedded-resource": True}),
    "statusallof": _object({"spec": _object({"a": _string()})}, allOf=[{"required": ["spec"]}]),
    "typenumbers": _object({"spec": {"type": "float"}}),
    "emptyschema": {},
}
for _name, _schema in _ROOTS.items():
    DEFINITIONS[f"root{_name}"] = Definition(_schema)
DEFINITIONS["rootwithstatus"] = Definition(_ROOTS["statusallof"], {"status": {}})
DEFINITIONS["rootstringwithstatus"] = Definition(_ROOTS["stringroot"], {"status": {}})
DEFINITIONS["rootrequiredwithstatus"] = Definition(_object({"a": _string()}, required=["a"]), {"status": {}})
DEFINITIONS["rootmaxpropertieswithstatus"] = Definition(_object({"a": _string()}, maxProperties=3), {"status": {}})

_X = "x-kubernetes-"
_INT_OR_STRING = {"x-kubernetes-int-or-string": True}
_MAP_ITEM = _object({"k": _string(), "v": _string()}, required=["k"])
_VALUES: dict[str, Schema] = {
    "notype": {"description": "x"},
    "wrongtype": {"type": "any"},
    "nulltype": {"type": "null"},
    "arraynoitems": {"type": "array"},
    "itemsnotype": _array({"description": "x"}),
    "badpattern": _string(pattern="[a"),
    "badpatterns": _object(
        {
            name: _string(pattern=pattern)
            for name, pattern in {
                "a": "a(", "b": "*a", "c": "a**", "d": "(?=a)", "e": "a{1001}", "f": "[z-a]", "g": "\\8", "h": "a)", "i": "a\\",
                "j": "(?P<n>a)(?P<n>b)", "k": "[[:foo:]]", "l": "\\pX", "m": "x{2,1}", "n": "(?P<n", "o": "(?i)^[a-z]+$",
                "p": "a{2}{3}", "q": "(?z)a", "r": "\\C",
            }.items()
        }
    ),  # fmt: skip
    "unique": _array(_string(), uniqueItems=True),
    "ref": {"type": "string", "$ref": "#/a"},
    "idschema": {"type": "string", "id": "a", "$schema": "b"},
    "patternproperties": _object(patternProperties={"a": _string()}),
    "definitions": _object({}, definitions={"a": _string()}),
    "dependencies": _object({"a": _string()}, dependencies={"a": ["b"]}),
    "additionalitems": _array(_string(), additionalItems=False),
    "itemslist": {"type": "array", "items": [_string(), {"type": "integer"}]},
    "bothproperties": _object({"a": _string()}, additionalProperties=_string()),
    "bothpropertiestrue": _object({"a": _string()}, additionalProperties=True),
    "bothpropertiesfalse": _object({"a": _string()}, additionalProperties=False),
    "additionalfalse": _object(additionalProperties=False),
    "preservefalse": _object({}, **{_X + "preserve-unknown-fields": False}),
    "preserveonly": {_X + "preserve-unknown-fields": True},
    "intorstring": {**_INT_OR_STRING},
    "intorstringtype": {**_INT_OR_STRING, "type": "string"},
    "intorstringany": {**_INT_OR_STRING, "anyOf": [{"type": "integer"}, {"type": "string"}]},
    "intorstringall": {
        **_INT_OR_STRING, "allOf": [{"anyOf": [{"type": "integer"}, {"type": "string"}]}, {"pattern": "^a"}],
    },
    "intorstringwrong": {**_INT_OR_STRING, "anyOf": [{"type": "string"}, {"type": "integer"}]},
    "intorstringpreserve": {**_INT_OR_STRING, _X + "preserve-unknown-fields": True, _X + "embedded-resource": True},
    "embedded": _object(**{_X + "embedded-resource": True}),
    "embeddednotype": {_X + "embedded-resource": True, _X + "preserve-unknown-fields": True},
    "embeddedstring": _string(**{_X + "embedded-resource": True}),
    "embeddedadditional": _object(
        additionalProperties=_string(), **{_X + "embedded-resource": True, _X + "preserve-unknown-fields": True}
    ),
    "embeddedmeta": _object(
        {"metadata": _object({"labels": _object({"a": _string()})}), "kind": {"type": "integer"}},
        **{_X + "embedded-resource": True},
    ),
    "embeddedinmeta": _object(
        {"metadata": _object({"x": _object({"a": _string()}, **{_X + "embedded-resource": True})})},
        **{_X + "embedded-resource": True},
    ),
    "nestedtype": _object({"a": _string()}, anyOf=[{"type": "object"}, {"properties": {"a": {"type": "string"}}}]),
    "nestedall": _object(
        {"a": _string(), "l": _array(_string())},
        allOf=[
            {"title": "x", "description": "y", "default": {}, "nullable": True},
            {"properties": {"a": {_X + "list-type": "set", _X + "list-map-keys": ["a"], _X + "map-type": "atomic"}}},
            {"properties": {"a": {_X + "preserve-unknown-fields": True, _X + "embedded-resource": True, **_INT_OR_STRING}}},
            {"additionalProperties": {"minLength": 1}},
            {"properties": {"l": {"items": {"minLength": 1}}}},
        ],
    ),
    "nestedrules": _object({"a": _string()}, oneOf=[{_X + "validations": [{"rule": "true"}]}]),
    "nestedmissing": _object(
        {"a": _string()},
        anyOf=[{"properties": {"b": {"minLength": 1}}}, {"items": {"minLength": 1}}],
        **{"not": {"properties": {"c": {"properties": {"d": {}}}}}},
    ),
    "nestedmetadata": _object({"metadata": _string()}, anyOf=[{"properties": {"metadata": {}}}]),
    "listtype": _array(_string(), **{_X + "list-type": "bag"}),
    "listtypestring": _string(**{_X + "list-type": "set"}),
    "listtypenotype": {_X + "list-type": "set", _X + "preserve-unknown-fields": True},
    "maptype": _object({}, **{_X + "map-type": "bag"}),
    "maptypearray": _array(_string(), **{_X + "map-type": "atomic"}),
    "keysnomap": _array(_MAP_ITEM, **{_X + "list-map-keys": ["k"]}),
    "keysset": _array(_string(), **{_X + "list-type": "set", _X + "list-map-keys": ["k"]}),
    "mapnokeys": _array(_MAP_ITEM, **{_X + "list-type": "map"}),
    "mapofstrings": _array(_string(), **{_X + "list-type": "map", _X + "list-map-keys": ["k"]}),
    "mapunknownkey": _array(_MAP_ITEM, **{_X + "list-type": "map", _X + "list-map-keys": ["k", "z", "k"]}),
    "mapcompoundkey": _array(
        _object({"k": _array(_string())}, required=["k"]), **{_X + "list-type": "map", _X + "list-map-keys": ["k"]}
    ),
    "mapoptionalkey": _array(_object({"k": _string()}), **{_X + "list-type": "map", _X + "list-map-keys": ["k"]}),
    "mapnullablekey": _array(
        _object({"k": _string(nullable=True)}, required=["k"], nullable=True),
        **{_X + "list-type": "map", _X + "list-map-keys": ["k"]},
    ),
    "mapdefaultkey": _array(
        _object({"k": _string(default="a")}), **{_X + "list-type": "map", _X + "list-map-keys": ["k"]}
    ),
    "mapitemslist": {"type": "array", "items": [_MAP_ITEM], _X + "list-type": "map", _X + "list-map-keys": ["k"]},
    "setofobjects": _array(_object({"a": _string()}), **{_X + "list-type": "set"}),
    "setofatomic": _array(_object({"a": _string()}, **{_X + "map-type": "atomic"}), **{_X + "list-type": "set"}),
    "setofsets": _array(_array(_string(), **{_X + "list-type": "set"}), **{_X + "list-type": "set"}),
    "setnullable": _array(_string(nullable=True), **{_X + "list-type": "set"}),
    "defaulttype": _string(default=1),
    "defaultpattern": _string(default="b", pattern="^a"),
    "defaultunknown": _object({"a": _string()}, default={"a": "x", "b": "y"}),
    "defaultnull": _string(default=None),
    "defaultnullable": _object({"a": _string(nullable=True)}, default={"a": None}),
    "defaultenum": _string(default="c", enum=["a", "b"]),
    "defaultinitems": _array(_object({"a": {"type": "integer", "default": "x"}})),
    "defaultadditional": _object(additionalProperties=_object({"a": _string(default="x")})),
    "defaultadditionalself": _object(additionalProperties=_string(default="x")),
    "defaultrequired": _object({"a": _string()}, required=["a"], default={}),
    "defaultembedded": _object(
        {"spec": _object({})},
        default={"spec": {}},
        **{_X + "embedded-resource": True},
    ),
    "defaultembeddedgood": _object(
        {"spec": _object({})},
        default={"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}, "spec": {}},
        **{_X + "embedded-resource": True},
    ),
    "defaultembeddedmeta": _object(
        {"metadata": _object({"name": _string(default="A B")}), "spec": _object({})}, **{_X + "embedded-resource": True}
    ),
    "defaultembeddedkind": _object(
        {"kind": _string(default="%"), "metadata": _object({"labels": _object({}, default={"a": 1})})},
        **{_X + "embedded-resource": True},
    ),
    "defaultmap": _array(
        _MAP_ITEM, default=[{"k": "a"}, {"k": "a"}], **{_X + "list-type": "map", _X + "list-map-keys": ["k"]}
    ),
    "defaultintorstring": {**_INT_OR_STRING, "default": True},
    "defaultfloat": {"type": "number", "default": 1.5, "maximum": 1},
    "minmax": {"type": "integer", "minimum": 5, "maximum": 1},
    "multiple": {"type": "integer", "multipleOf": 0},
    "formats": _object({"a": _string(format="foo"), "b": {"type": "integer", "format": "int99"}}),
    "enumempty": _string(enum=[]),
    "requiredtwice": _object({"a": _string()}, required=["a", "a", "b"]),
    "negative": _string(maxLength=-1),
}
for _name, _schema in _VALUES.items():
    DEFINITIONS[f"value{_name}"] = Definition(_spec(_schema))

# Rules ----------------------------------------------------------------------------------------------------------------


def _rules(schema: Schema, *rules: dict[str, Any] | str) -> Schema:
    return {**schema, _X + "validations": [{"rule": one} if isinstance(one, str) else one for one in rules]}


_NUMBERS = _object({"a": {"type": "integer"}, "b": {"type": "integer"}, "s": _string(maxLength=10)})
_RULES: dict[str, Schema] = {
    "good": _rules(_NUMBERS, "self.a < self.b"),
    "nobool": _rules(_NUMBERS, "self.a + self.b"),
    "syntax": _rules(_NUMBERS, "self.a <"),
    "undeclared": _rules(_NUMBERS, "self.z < 3"),
    "types": _rules(_NUMBERS, "self.a < self.s"),
    "empty": _rules(_NUMBERS, " "),
    "emptymessage": _rules(_NUMBERS, {"rule": "true", "message": " "}),
    "linesinmessage": _rules(_NUMBERS, {"rule": "true", "message": "a\nb"}),
    "linesinrule": _rules(_NUMBERS, {"rule": "true ||\nfalse"}),
    "expression": _rules(_NUMBERS, {"rule": "true", "messageExpression": "'a' + self.s"}),
    "expressionint": _rules(_NUMBERS, {"rule": "true", "messageExpression": "self.a"}),
    "expressionsyntax": _rules(_NUMBERS, {"rule": "true", "messageExpression": "'"}),
    "expressionempty": _rules(_NUMBERS, {"rule": "true", "messageExpression": " "}),
    "reason": _rules(_NUMBERS, {"rule": "true", "reason": "FieldValueWrong"}),
    "fieldpath": _rules(_NUMBERS, {"rule": "true", "fieldPath": ".z"}, {"rule": "true", "fieldPath": ".a"}),
    "fieldpathbad": _rules(_NUMBERS, {"rule": "true", "fieldPath": "a"}, {"rule": "true", "fieldPath": " "}),
    "fieldpathbrackets": _rules(_NUMBERS, {"rule": "true", "fieldPath": "['a']"}),
    "oldself": _rules(_NUMBERS, "self.a >= oldSelf.a"),
    "oldselfinlist": _array(_rules(_NUMBERS, "self.a >= oldSelf.a")),
    "optionalold": _rules(_NUMBERS, {"rule": "!oldSelf.hasValue() || self.a >= oldSelf.value().a", "optionalOldSelf": True}),
    "optionalunused": _rules(_NUMBERS, {"rule": "self.a > 0", "optionalOldSelf": True}),
    "expensive": _array(_rules(_string(), "self.contains('a')")),
    "expensivebounded": _array(_rules(_string(maxLength=20), "self.contains('a')"), maxItems=10),
    "quadratic": _rules(_array(_string()), "self.all(x, self.exists(y, x == y))"),
    "quadraticbounded": _rules(_array(_string(maxLength=20), maxItems=20), "self.all(x, self.exists(y, x == y))"),
    "mapall": _rules(_object(additionalProperties=_string(maxLength=5), maxProperties=9), "self.all(k, self[k] != '')"),
    "escaped": _rules(_object({"a-b": _string(), "namespace": _string()}), "self.a__dash__b == self.__namespace__"),
    "hidden": _rules(_object({"x": {_X + "preserve-unknown-fields": True}}), "self.x.y == 1"),
    "intorstring": _rules(_object({"p": {**_INT_OR_STRING}}), "type(self.p) == int ? self.p > 0 : self.p.endsWith('%')"),
    "durations": _rules(_object({"d": _string(format="duration"), "t": _string(format="date-time")}), "self.d > duration('1s')"),
}  # fmt: skip
for _name, _schema in _RULES.items():
    DEFINITIONS[f"rules{_name}"] = Definition(_spec(_schema))
DEFINITIONS["rulestotal"] = Definition(
    _object({f"f{index}": _array(_rules(_string(), "self.size() < 5")) for index in range(30)})
)

# Values ---------------------------------------------------------------------------------------------------------------

_ANY: list[Any] = ["a", "", 1, 1.5, 1.0, True, None, [], ["a"], {}, {"a": 1}]
_NUMBER_VALUES: list[Any] = [0, 1, -1, 5, 10, 3, 2.5, 1e20, 9223372036854775807, 9223372036854775808, 2147483648, 0.1, 1e-7]
_PAIRS = [{"k": "a"}, {"k": "b"}]


def _values(name: str, schema: Schema, values: list[Any], **more: Any) -> None:
    objects = {
        f"v{index}": [{"verb": "create", "object": {"spec": {"v": value}}, **more}] for index, value in enumerate(values)
    }
    DEFINITIONS[f"of{name}"] = Definition(_spec(schema), objects=objects)


for _type in ("string", "integer", "number", "boolean"):
    _values(f"type{_type}", {"type": _type}, _ANY)
_values("typeobject", _object({"a": {"type": "integer"}}), _ANY)
_values("typearray", _array(_string()), _ANY)
_values("typeany", {_X + "preserve-unknown-fields": True}, _ANY)
_values("typeintorstring", {**_INT_OR_STRING}, _ANY)
_values("nullablestring", _string(nullable=True, enum=["a"]), ["a", None, "b"])
_values("nullableobject", _object({"a": _string()}, nullable=True), [None, {}, {"a": None}])
_values("integerbounds", {"type": "integer", "minimum": 1, "maximum": 5}, _NUMBER_VALUES)
_values(
    "numberbounds",
    {"type": "number", "minimum": 0.5, "maximum": 5, "exclusiveMinimum": True, "exclusiveMaximum": True},
    _NUMBER_VALUES,
)
_values("integerfraction", {"type": "integer", "maximum": 2.5, "multipleOf": 0.5}, [1, 2, 3])
_values("int32", {"type": "integer", "format": "int32"}, _NUMBER_VALUES)
_values("int64", {"type": "integer", "format": "int64"}, _NUMBER_VALUES)
_values("floats", {"type": "number", "format": "float"}, [1, 1.5, 1e39, 3.5e38, -1e39])
_values("multipleof", {"type": "integer", "multipleOf": 3}, [0, 3, 4, -3, -4, 3.0])
_values("multipleoffloat", {"type": "number", "multipleOf": 0.1}, [0.3, 0.25, 1, -0.3, -0.25, 1e16])
_values("multipleofzero", {"type": "integer", "multipleOf": 0}, [1])
_values("lengths", _string(minLength=2, maxLength=4), ["", "ab", "abcde", "äöüß", "äöüßx", "🙂"])
_values("lengthone", _string(maxLength=1), ["ab"])
_values("pattern", _string(pattern="^[a-z]+(-[0-9]{2,3})?$"), ["abc", "abc-12", "abc-1", "", "A", "abc\n", "é<&>"])
_values("patternunicode", _string(pattern=r"^\p{Lu}\d\w\s$"), ["A1b ", "Ä1b ", "A١b ", "A1ß ", "A1b\u00a0"])
_values("enumstrings", _string(enum=["a", "b c", ""]), ["a", "b c", "c", ""])
_values("enumnumbers", {"type": "number", "enum": [1, 2.5]}, [1, 2.5, 2, 1.0, 1.5])
_values("enumintegers", {"type": "integer", "enum": [1, 2]}, [1, 3, 2.0])
_values("enumobjects", _object({"a": {"type": "integer"}}, enum=[{"a": 1}, {"a": 2}]), [{"a": 1}, {"a": 3}, {}])
_values("enumintorstring", {**_INT_OR_STRING, "enum": [1, "a", "A"]}, [1, "a", 2, "b", 65])
_values("items", _array({"type": "integer"}, minItems=1, maxItems=2), [[], [1], [1, 2, 3], [1, "a"], ["a", "b", "c"]])
_values("itemone", _array({"type": "integer"}, maxItems=1), [[1, 2]])
_values(
    "properties",
    _object(additionalProperties={"type": "integer"}, minProperties=1, maxProperties=2),
    [{}, {"a": 1}, {"a": 1, "b": 2, "c": 3}, {"a": "x"}, {"a": None}],
)
_values(
    "required",
    _object({"a": _string(), "b": _object({"c": _string()}, required=["c"])}, required=["a", "b"]),
    [{}, {"a": ""}, {"a": "x", "b": {}}, {"a": "x", "b": {"c": None}}, {"a": None, "b": {"c": "x"}}],
)
_values("sets", _array(_string(), **{_X + "list-type": "set"}), [["a", "b"], ["a", "a"], ["a", "a", "a", "b", "b"]])
_values(
    "setsofnumbers", _array({"type": "number"}, **{_X + "list-type": "set"}), [[1, 1.0], [1, 1], [0.5, 0.5]]
)
_values(
    "setsofobjects",
    _array(_object({"a": {"type": "integer"}, "b": _string()}, **{_X + "map-type": "atomic"}), **{_X + "list-type": "set"}),
    [[{"a": 1, "b": "x"}, {"b": "x", "a": 1}], [{"a": 1}, {"a": 2}]],
)
_values(
    "maps",
    _array(_MAP_ITEM, **{_X + "list-type": "map", _X + "list-map-keys": ["k"]}),
    [_PAIRS, [{"k": "a"}, {"k": "a", "v": "x"}], [{"v": "x"}], [{"k": "a"}, {"k": "a"}, {"k": "a"}]],
)
_values(
    "mapsbytwo",
    _array(
        _object({"k": _string(), "n": {"type": "integer", "default": 1}}, required=["k"]),
        **{_X + "list-type": "map", _X + "list-map-keys": ["k", "n"]},
    ),
    [_PAIRS, [{"k": "a"}, {"k": "a", "n": 1}], [{"k": "a"}, {"k": "a", "n": 2}]],
)
_BRANCHES = [{"required": ["a"]}, {"required": ["b"]}, {"properties": {"c": {"minimum": 5}}, "required": ["c"]}]
_ABC = {"a": _string(), "b": _string(), "c": {"type": "integer"}}
_ABC_VALUES: list[Any] = [{}, {"a": "x"}, {"a": "x", "b": "y"}, {"c": 1}, {"c": 9}, {"c": 9, "b": "x"}, {"c": 1, "a": "x"}]
_values("anyof", _object(_ABC, anyOf=_BRANCHES), _ABC_VALUES)
_values("oneof", _object(_ABC, oneOf=_BRANCHES), _ABC_VALUES)
_values("allof", _object(_ABC, allOf=_BRANCHES), _ABC_VALUES)
_values("not", _object(_ABC, **{"not": {"required": ["a"]}}), _ABC_VALUES)
_values(
    "nested",
    _object(
        {"kind": _string(enum=["x", "y"]), **_ABC},
        oneOf=[
            {"properties": {"kind": {"enum": ["x"]}}, "required": ["a"]},
            {"properties": {"kind": {"enum": ["y"]}, "b": {"anyOf": [{"pattern": "^q"}, {"minLength": 3}]}}},
        ],
    ),
    [{"kind": "x", "a": "1"}, {"kind": "x"}, {"kind": "y"}, {"kind": "y", "b": "z"}, {"kind": "y", "b": "zzz"}, {"kind": "z"}, {}],
)  # fmt: skip
_values("stringany", _string(anyOf=[{"format": "ipv4"}, {"format": "ipv6"}]), ["1.2.3.4", "::1", "a"])
_FORMATS: dict[str, list[str]] = {
    "bsonobjectid": ["507f1f77bcf86cd799439011", "507f"],
    "uri": [
        "http://a.b/c", "/a", "a", "", "http://", "mailto:a@b", "http://[::1]:80/", "http://a b/", "http://a:b/", "a:b",
        "http://%41/", "//a/b", "http://a/%zz", "?a", "#a", "http://a#b", "1a:b",
    ],
    "email": ["a@b", "a@b.c", "a", "A <a@b>", "<a@b>", "a@b.", '"a b"@c', "a..b@c", "a@b@c", "ä@b.c", "a@[1.2.3.4]", " a@b "],
    "hostname": ["a", "a.b", "a_b", "-a", "a-", "a.b.c1", "a..b", "x" * 64, "x" * 63 + ".com", "1.2", "ä.com", "a.b.co"],
    "ipv4": ["1.2.3.4", "01.2.3.4", "1.2.3", "256.1.1.1", "::ffff:1.2.3.4", "::1"],
    "ipv6": ["::1", "::ffff:1.2.3.4", "1.2.3.4", "fe80::1%eth0", "1::2::3", "::01.2.3.4"],
    "cidr": ["1.2.3.4/8", "01.2.3.4/8", "1.2.3.4/33", "::/0", "1.2.3.4", "1.2.3.4/08", "1.2.3.4/-1"],
    "mac": ["00:00:5e:00:53:01", "00-00-5e-00-53-01", "0000.5e00.5301", "02:00:5e:10:00:00:00:01", "00:00:5e", "00:00-5e:00:53:01"],
    "uuid": ["550e8400-e29b-41d4-a716-446655440000", "550E8400E29B41D4A716446655440000", "x"],
    "uuid3": ["550e8400-e29b-31d4-a716-446655440000", "550e8400-e29b-41d4-a716-446655440000"],
    "uuid4": ["550e8400-e29b-41d4-a716-446655440000", "550e8400-e29b-41d4-c716-446655440000"],
    "uuid5": ["550e8400-e29b-51d4-a716-446655440000", "550e8400-e29b-41d4-a716-446655440000"],
    "isbn": ["0321751043", "978-0321751041", "0321751044"],
    "isbn10": ["0321751043", "0-321-75104-3", "080442957X", "080442957x"],
    "isbn13": ["978-0321751041", "978-0321751042"],
    "creditcard": ["4111111111111111", "4111 1111-1111 1111", "4111111111111112"],
    "ssn": ["123-45-6789", "123456789", "123 45 6789"],
    "hexcolor": ["#fff", "fff", "#ffff"],
    "rgbcolor": ["rgb(1,2,3)", "rgb( 1 , 2 , 255 )", "rgb(256,0,0)"],
    "byte": ["YQ==", "YQ", "", "YWJj", "Y-_="],
    "password": ["x", ""],
    "date": ["2024-02-29", "2023-02-29", "2024-2-1", "0000-01-01"],
    "duration": ["1s", "1h2m", "1", "0", "2 weeks", "3days", "1.5h", "-1s", "1x", "1s2x", "", "+.5s", "1 hr", "5 fortnights"],
    "date-time": ["2024-02-29T01:02:03Z", "2024-02-29t01:02:03.5z", "2024-02-29 01:02:03Z", "2024-02-29T25:00:00Z", "2024-02-29T01:02:03+01:00", "2024-02-29T01:02:03"],
    "datetime": ["2024-02-29T01:02:03Z", "x"],
    "k8s-short-name": ["a", "A", "a-", "x" * 64],
    "k8s-long-name": ["a.b", "a..b", "A.b", "x" * 254],
    "int32": ["x"],
    "nosuchformat": ["x"],
}  # fmt: skip
for _name, _texts in _FORMATS.items():
    _values(f"format{_name.replace('-', '')}", _string(format=_name), list(_texts))
_values("formatonarray", _array(_string(), format="ipv4"), [["x"], "x"])
_values("formatonobject", _object({}, format="ipv4"), [{}, "x", 1])

# Pruning, defaults, metadata ------------------------------------------------------------------------------------------

_SPECS: dict[str, tuple[Schema, list[Any]]] = {
    "prune": (
        _object({"a": _object({"b": _string()}), "l": _array(_object({"c": _string()}))}),
        [{"a": {"b": "x", "z": 1}, "l": [{"c": "x", "y": 2}, {"x": {"y": 1}}], "q": [1]}, {"a": {}, "l": []}],
    ),
    "preserve": (
        _object(
            {"a": _object({"b": _string()}), "l": _array(_object({"c": _string()}))},
            **{_X + "preserve-unknown-fields": True},
        ),
        [{"a": {"b": "x", "z": 1}, "l": [{"c": "x", "y": 2}], "q": {"r": 1}, "n": None}],
    ),
    "preservelist": (
        {"type": "array", _X + "preserve-unknown-fields": True, "items": _object({"a": _object({"b": _string()})})},
        [[{"a": {"b": "x", "c": 1}, "z": {"y": 1}}]],
    ),
    "maps": (
        _object(additionalProperties=_object({"a": _string()})),
        [{"x": {"a": "y", "b": 1}, "z": {}}, {"x": None}],
    ),
    "anymaps": (_object(additionalProperties=True), [{"x": {"a": 1}, "y": 2}]),
    "nomaps": (_object(additionalProperties=False), [{"x": {"a": 1}, "y": 2}, {}]),
    "free": (_object(), [{"x": 1}, {}]),
    "defaults": (
        _object(
            {
                "a": _string(default="x"),
                "o": _object({"p": {"type": "integer", "default": 3}, "q": _string()}, default={"q": "y"}),
                "l": _array(_object({"r": {"type": "boolean", "default": True}})),
                "n": _string(nullable=True, default="z"),
                "m": _object(additionalProperties=_object({"s": _string(default="t")})),
                "w": _array(_string(default="u")),
            }
        ),
        [
            {},
            {"a": None, "o": None, "l": None, "n": None},
            {"o": {}, "l": [{}, {"r": False}, None], "m": {"k": {}, "j": None}, "w": ["v", None]},
            {"o": {"q": None}, "m": None},
        ],
    ),
    "nulls": (
        _object(
            {"a": _string(), "b": _string(nullable=True), "c": _array(_string()), "d": _object({"e": _string()})},
            required=["a"],
        ),
        [{"a": None, "b": None}, {"a": "x", "c": [None], "d": {"e": None}}, {"a": "x", "c": None, "d": None}],
    ),
}
for _name, (_schema, _specs) in _SPECS.items():
    DEFINITIONS[f"spec{_name}"] = Definition(
        _object({"spec": _schema}),
        objects={
            f"v{index}{how[0].lower()}": [{"verb": "create", "object": {"spec": spec, "unknown": 1}, "validation": how}]
            for index, spec in enumerate(_specs)
            for how in ("Strict", "Warn")
        },
    )
_EMBEDDED = _object({"data": _string()}, **{_X + "embedded-resource": True})
_EMBEDDED_ANY = _object(**{_X + "embedded-resource": True, _X + "preserve-unknown-fields": True})
_HEAD = {"apiVersion": "v1", "kind": "A"}
_EMBEDDED_VALUES: list[Any] = [
    {},
    _HEAD,
    {**_HEAD, "metadata": {"name": "a", "labels": {"x": "y"}, "foo": 1}, "data": "x", "z": 1},
    {**_HEAD, "metadata": {"name": 1}},
    {**_HEAD, "metadata": {"name": "a/b", "labels": {"a b": "-"}, "annotations": {"x/y/z": ""}, "namespace": "A"}},
    {**_HEAD, "metadata": {"finalizers": ["x"], "ownerReferences": [{"kind": "A"}]}},
    {"apiVersion": "a/b/c", "kind": "1%"},
    {"apiVersion": "", "kind": ""},
    {"apiVersion": 1, "kind": "A"},
    {**_HEAD, "metadata": None},
    {**_HEAD, "metadata": {"creationTimestamp": None, "labels": {"a": None}}},
]
_values("embedded", _EMBEDDED, _EMBEDDED_VALUES)
_values("embeddedany", _EMBEDDED_ANY, _EMBEDDED_VALUES, validation="Warn")
DEFINITIONS["metadata"] = Definition(
    _object({"metadata": _object({"name": _string(maxLength=6, pattern="^v")})}),
    objects={
        "v1": [{"verb": "create", "object": {"metadata": {"foo": 1, "labels": {"a": "b"}}}}],
        "v2": [{"verb": "create", "object": {"metadata": {"foo": 1, "labels": {"a": "b"}}}, "validation": "Warn"}],
        "vfin": [{"verb": "create", "object": {"metadata": {"finalizers": ["x", "a.b/c"], "annotations": {"a": None}}}}],
        "vfin2": [{"verb": "create", "object": {"metadata": {"finalizers": ["x/y/z", "orphan", "foregroundDeletion"]}}}],
        "toolong": [{"verb": "create", "object": {}}],
        "v3": [{"verb": "create", "object": {"metadata": {"labels": {"a": 1}}}}],
        "v4": [{"verb": "text", "text": '{"apiVersion": "cases.example.com/v1", "kind": "Metadata", "metadata": {"name": "v4"},'
                ' "metadata": {"name": "v4"}, "spec": {"a": 1, "a": 2}}'}],
        "v5": [{"verb": "text", "validation": "Warn", "text": '{"apiVersion": "cases.example.com/v1", "kind": "Metadata",'
                ' "metadata": {"name": "v5", "name": "v5"}, "spec": {"a": 1, "a": 2, "b": [{"c": 1, "c": 2}]}}'}],
    },
)  # fmt: skip

# Updates --------------------------------------------------------------------------------------------------------------

_LOOSE = _object({"spec": _object({
    "a": _string(), "o": _object({"p": _string(), "q": {"type": "integer"}}), "l": _array(_string()),
    "m": _array(_MAP_ITEM, **{_X + "list-type": "map", _X + "list-map-keys": ["k"]}),
    "s": _array(_string(), **{_X + "list-type": "set"}), "d": _object(additionalProperties=_string()),
})})  # fmt: skip
_TIGHT = _object({"spec": _object({
    "a": _string(minLength=5), "o": _object({"p": _string(pattern="^z"), "q": {"type": "integer", "maximum": 3}}, required=["q"]),
    "l": _array(_string(minLength=5)),
    "m": _array(
        _object({"k": _string(), "v": _string(minLength=5)}, required=["k"]), **{_X + "list-type": "map", _X + "list-map-keys": ["k"]}
    ),
    "s": _array(_string(minLength=5), **{_X + "list-type": "set"}), "d": _object(additionalProperties=_string(minLength=5)),
    "n": _string(default="new"),
})})  # fmt: skip
_FIRST = {
    "a": "x", "o": {"p": "y"}, "l": ["a", "b"], "m": [{"k": "a", "v": "x"}, {"k": "b", "v": "y"}], "s": ["a"], "d": {"x": "y"},
}  # fmt: skip
_CHANGES: dict[str, dict[str, Any]] = {
    "same": {},
    "a": {"a": "y"},
    "other": {"o": {"p": "y", "q": 9}},
    "inner": {"o": {"p": "w"}},
    "list": {"l": ["a", "b", "c"]},
    "maporder": {"m": [{"k": "b", "v": "y"}, {"k": "a", "v": "x"}]},
    "mapadd": {"m": [{"k": "a", "v": "x"}, {"k": "b", "v": "y"}, {"k": "c", "v": "z"}]},
    "mapchange": {"m": [{"k": "a", "v": "w"}, {"k": "b", "v": "y"}]},
    "set": {"s": ["a", "b"]},
    "additional": {"d": {"x": "y", "z": "w"}},
    "less": {"l": [], "m": [], "s": [], "d": {}},
}
DEFINITIONS["ratchet"] = Definition(
    _LOOSE,
    objects={
        "v1": [
            {"verb": "create", "object": {"spec": _FIRST}},
            {"verb": "schema", "schema": _TIGHT},
            {"verb": "get"},
            *({"verb": "update", "object": {"spec": {**_FIRST, **change}}} for change in _CHANGES.values()),
        ]
    },
)
_SHORT_ITEM = _object({"k": _string(maxLength=9), "v": _string(maxLength=9)}, required=["k"])
_RULED = _object({"spec": _rules(
    _object({
        "min": {"type": "integer"}, "max": {"type": "integer"}, "name": _rules(_string(), {"rule": "self == oldSelf", "message": "fixed"}),
        "m": _array(
            _rules(_SHORT_ITEM, {"rule": "self.v == oldSelf.v", "message": "v is fixed", "reason": "FieldValueForbidden", "fieldPath": ".v"}),
            maxItems=5,
            **{_X + "list-type": "map", _X + "list-map-keys": ["k"]},
        ),
        "opt": _rules(_string(), {"rule": "oldSelf.hasValue() || self == 'new'", "optionalOldSelf": True}),
        "e": _rules(_object({"f": {"type": "integer"}}), {"rule": "self.f > 3", "messageExpression": "'f is small' + (self.f > 2 ? '!' : '')"}),
        "bad": _rules(_object({"g": {"type": "integer"}}), {"rule": "10 / self.g > 1"}),
        "miss": _rules(_object({"h": {"type": "integer"}}), {"rule": "self.h > 1", "reason": "FieldValueRequired", "message": " is needed "}),
        "dup": _rules(_string(), {"rule": "self != 'd'", "reason": "FieldValueDuplicate"}),
        "num": _rules({"type": "number"}, "self < 3.0"),
        "list": _rules(_array(_string()), "self.size() < 2"),
    }),
    "!has(self.min) || !has(self.max) || self.min <= self.max",
)})  # fmt: skip
_RULED_SPECS: list[Any] = [
    {"min": 1, "max": 2},
    {"min": 3, "max": 2},
    {"min": 3, "max": "x"},
    {"opt": "old"},
    {"opt": "new"},
    {"e": {"f": 1}},
    {"bad": {"g": 0}},
    {"bad": {"g": 100}},
    {"miss": {}},
    {"miss": {"h": 0}},
    {"dup": "d"},
    {"num": 3},
    {"num": 3.5},
    {"list": ["a", "b"]},
]
DEFINITIONS["ruled"] = Definition(
    _RULED,
    objects={
        **{f"v{index}": [{"verb": "create", "object": {"spec": spec}}] for index, spec in enumerate(_RULED_SPECS)},
        "changes": [
            {"verb": "create", "object": {"spec": {"name": "a", "m": [{"k": "a", "v": "x"}]}}},
            {"verb": "update", "object": {"spec": {"name": "b", "m": [{"k": "a", "v": "x"}]}}},
            {"verb": "update", "object": {"spec": {"name": "a", "m": [{"k": "a", "v": "y"}, {"k": "b", "v": "y"}]}}},
            {"verb": "update", "object": {"spec": {"name": "a", "m": [{"k": "b", "v": "y"}]}}},
            {"verb": "update", "object": {"spec": {"m": [{"k": "b", "v": "y"}], "opt": "x"}}},
        ],
    },
)
DEFINITIONS["subresources"] = Definition(
    _object({
        "spec": _object({"replicas": {"type": "integer"}, "s": _string()}),
        "status": _object({"replicas": {"type": "integer", "minimum": 0}, "selector": {_X + "preserve-unknown-fields": True}, "r": _string()}, required=["r"]),
    }),
    {
        "status": {},
        "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"},
    },
    {
        "v1": [
            {"verb": "create", "object": {"spec": {"replicas": -1}, "status": {"r": 1}}},
            {"verb": "create", "object": {"spec": {"replicas": 3000000000}}},
            {"verb": "create", "object": {"spec": {"replicas": "x"}}},
            {"verb": "create", "object": {"spec": {"replicas": 1}, "status": {"r": "x"}}},
            {"verb": "update", "path": "/status", "object": {"status": {}}},
            {"verb": "update", "path": "/status", "object": {"status": {"r": "x", "replicas": -1}}},
            {"verb": "update", "path": "/status", "object": {"status": {"r": "x", "replicas": 1, "selector": 1, "z": 1}}},
            {"verb": "update", "path": "/status", "object": {"spec": {"replicas": 7}, "status": {"r": "x", "replicas": 1, "selector": "a=b"}}},
            {"verb": "update", "object": {"spec": {"replicas": 2}, "status": {"r": "y"}}},
        ]
    },
)  # fmt: skip

# Managed fields -------------------------------------------------------------------------------------------------------

_MERGED = _object({"spec": _object({
    "atomic": _array(_string()), "set": _array(_string(), **{_X + "list-type": "set"}),
    "map": _array(
        _object({"k": _string(), "n": {"type": "integer", "default": 1}, "v": _string()}, required=["k"]),
        **{_X + "list-type": "map", _X + "list-map-keys": ["k", "n"]},
    ),
    "whole": _object({"a": _string(), "b": _string()}, **{_X + "map-type": "atomic"}),
    "parts": _object({"a": _string(), "b": _string()}),
    "any": {_X + "preserve-unknown-fields": True}, "free": _object(**{_X + "preserve-unknown-fields": True}),
    "port": {**_INT_OR_STRING}, "additional": _object(additionalProperties=_object({"x": _string(), "y": _string()})),
    "template": _object({"spec": _object({"c": _array(_string())})}, **{_X + "embedded-resource": True}),
})})  # fmt: skip
_APPLIED = {
    "atomic": ["a"], "set": ["a"], "map": [{"k": "a", "v": "x"}], "whole": {"a": "1"}, "parts": {"a": "1"},
    "any": {"q": {"r": 1}, "l": [1]}, "free": {"s": {"t": 1}}, "port": 1, "additional": {"e": {"x": "1"}},
    "template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": "b"}}, "spec": {"c": ["d"]}},
}  # fmt: skip
DEFINITIONS["applied"] = Definition(
    _MERGED,
    objects={
        "v1": [
            {"verb": "apply", "manager": "one", "managed": True, "object": {"spec": _APPLIED}},
            {"verb": "apply", "manager": "two", "managed": True, "object": {"spec": {
                "set": ["b"], "map": [{"k": "a", "n": 2}], "parts": {"b": "2"}, "additional": {"e": {"y": "2"}, "f": {"x": "3"}},
                "free": {"s": {"u": 2}},
            }}},
            {"verb": "apply", "manager": "two", "managed": True, "object": {"spec": {
                "atomic": ["b"], "whole": {"b": "2"}, "parts": {"a": "3"}, "port": "x", "any": {"q": {"r": 2}, "l": [2]},
            }}},
            {"verb": "apply", "manager": "two", "force": True, "managed": True, "object": {"spec": {"atomic": ["b"], "parts": {"a": "3"}}}},
            {"verb": "apply", "manager": "one", "managed": True, "object": {"spec": {"set": ["c"], "map": []}}},
            {"verb": "apply", "manager": "three", "managed": True, "object": {"spec": {"set": "c", "zzz": 1}}},
            {"verb": "apply", "manager": "three", "managed": True, "object": {"zzz": 1}},
            {"verb": "apply", "manager": "three", "managed": True, "object": {"spec": {"set": ["c", "c"]}}},
            {"verb": "apply", "manager": "three", "managed": True, "object": {"spec": {"map": [{"v": "c"}]}}},
            {"verb": "update", "manager": "four", "managed": True, "object": {"spec": {"set": ["x"], "map": [{"k": "z"}], "parts": {"a": "9"}}}},
        ]
    },
)  # fmt: skip

# What is published ----------------------------------------------------------------------------------------------------

PUBLISHED: Schema = {'type': 'object',
 'description': 'A thing',
 'properties': {'spec': {'type': 'object',
                         'required': ['a', 'n'],
                         'properties': {'a': {'type': 'string',
                                              'minLength': 1,
                                              'description': 'the a',
                                              'default': 'x'},
                                        'n': {'type': 'string', 'nullable': True},
                                        'p': {'x-kubernetes-int-or-string': True},
                                        'q': {'x-kubernetes-int-or-string': True, 'anyOf': [{'minLength': 1}]},
                                        'u': {'type': 'object',
                                              'x-kubernetes-preserve-unknown-fields': True,
                                              'properties': {'z': {'type': 'string'}}},
                                        'e': {'type': 'object',
                                              'x-kubernetes-embedded-resource': True,
                                              'properties': {'spec': {'type': 'object'}}},
                                        'f': {'type': 'object',
                                              'x-kubernetes-embedded-resource': True,
                                              'x-kubernetes-preserve-unknown-fields': True},
                                        'l': {'type': 'array',
                                              'x-kubernetes-list-type': 'map',
                                              'x-kubernetes-list-map-keys': ['k'],
                                              'items': {'type': 'object',
                                                        'required': ['k'],
                                                        'properties': {'k': {'type': 'string'}}},
                                              'oneOf': [{'minItems': 1}]},
                                        'm': {'type': 'object',
                                              'maxProperties': 3,
                                              'additionalProperties': {'type': 'integer',
                                                                       'maximum': 5,
                                                                       'minimum': 1.5}},
                                        'en': {'type': 'string', 'enum': ['a', 'b'], 'format': 'uuid'},
                                        'r': {'type': 'integer',
                                              'x-kubernetes-validations': [{'rule': 'self>1', 'message': 'm'}]},
                                        'aa': {'type': 'object', 'additionalProperties': True},
                                        'ae': {'type': 'object',
                                               'example': {'x': 1},
                                               'externalDocs': {'url': 'http://a', 'description': 'b'},
                                               'title': 't',
                                               'x-kubernetes-map-type': 'atomic'}}},
                'status': {'type': 'object'}}}
