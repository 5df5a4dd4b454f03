"""Selectors of labels, fields and nodes, and tolerations."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kemu.emulated.objects import resources, selectors
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.selectors import LabelSelector, Requirement, SelectorError
from kemu.messages.k8s import core_v1_pb2, meta_v1_pb2

LABELS = {"app": "web", "tier": "front", "cores": "8", "empty": ""}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("app=web", True),
        ("app==web", True),
        ("app=api", False),
        ("app!=api", True),
        ("app!=web", False),
        ("none!=web", True),
        ("app=web,tier=back", False),
        (" app = web , tier in (front, back) ", True),
        ("app in (api,web)", True),
        ("app notin (api)", True),
        ("app notin (api,web)", False),
        ("none notin (a)", True),
        ("none in (a)", False),
        ("app", True),
        ("!app", False),
        ("none", False),
        ("!none", True),
        ("cores>7", True),
        ("cores>8", False),
        ("cores<9", True),
        ("app>1", False),
        ("none<1", False),
        ("empty=", True),
        ("empty in (,x)", True),
        ("app=", False),
        ("kubernetes.io/os=linux", False),
        ("in in (in)", False),
    ],
)
def test_label_selectors_as_text(text: str, matches: bool) -> None:
    selector = selectors.parse_labels(text)
    assert selector.matches(LABELS) is matches
    message = core_v1_pb2.Pod(metadata=meta_v1_pb2.ObjectMeta(labels=LABELS))
    assert selector.matches(message.metadata.labels) is matches
    assert dict(message.metadata.labels) == LABELS
    assert selectors.parse_labels(str(selector)) == selector


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a=b=c", "found '='"),
        ("a b", "found 'b'"),
        ("a b", "^unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt$"),
        ("=x", "^found '=', expected: !, identifier, or 'end of string'$"),
        (",", "^found ',', expected: !, identifier, or 'end of string'$"),
        ("a,", "^found '', expected: identifier after ','$"),
        ("a in x", r"'\('"),
        ("a in (x", r"'\)'"),
        ("a in ()x", "found 'x'"),
        ("-a", "name part must consist"),
        ("a=-", "a valid label must be"),
        ("a>b", "an integer"),
        ("!", "found '', expected: identifier"),
        ("!a=b", "found '='"),
    ],
)
def test_texts_that_are_no_label_selectors(text: str, says: str) -> None:
    with pytest.raises(SelectorError, match=says):
        selectors.parse_labels(text)


def test_equality_requirements_are_shown_for_indices() -> None:
    selector = selectors.parse_labels("a=b,c in (d),e in (f,g),!h,a!=x")
    assert selector.equals == {"a": "b", "c": "d"}
    assert selectors.parse_labels("a=b,a=c").equals == {"a": "b"}
    assert not selectors.parse_labels("a=b,a=c").matches({"a": "b"})


def selector_message(**data: Any) -> Any:
    return convert.from_json(meta_v1_pb2.LabelSelector, data)


def test_label_selector_messages() -> None:
    assert selectors.compile_labels(None) is selectors.NOTHING
    assert not selectors.compile_labels(None).matches({})
    assert selectors.compile_labels(selector_message()).everything
    selector = selectors.compile_labels(
        selector_message(
            matchLabels={"app": "web"},
            matchExpressions=[
                {"key": "tier", "operator": "In", "values": ["front"]},
                {"key": "none", "operator": "DoesNotExist"},
                {"key": "empty", "operator": "Exists"},
                {"key": "cores", "operator": "NotIn", "values": ["4"]},
            ],
        )
    )
    assert selector.matches(LABELS)
    assert not selector.matches({**LABELS, "none": ""})
    assert selector.equals == {"app": "web", "tier": "front"}
    for bad in ({"key": "a", "operator": "Gt", "values": ["1"]}, {"key": "a", "operator": "In"}):
        with pytest.raises(SelectorError):
            selectors.compile_labels(selector_message(matchExpressions=[bad]))


def test_an_absent_selector_differs_from_an_empty_one() -> None:
    term = core_v1_pb2.PodAffinityTerm()
    assert not selectors.compile_labels_field(term, "labelSelector").matches(LABELS)
    term.labelSelector.SetInParent()
    assert selectors.compile_labels_field(term, "labelSelector").matches(LABELS)


words = st.sampled_from(["a", "b", "c", "1", "2", ""])
requirements = st.one_of(
    st.builds(
        lambda key, operator, values: Requirement(key, operator, tuple(sorted(values))),
        st.sampled_from(["k", "m"]),
        st.sampled_from(["In", "NotIn"]),
        st.lists(words, min_size=1, max_size=3, unique=True),
    ),
    st.builds(Requirement, st.sampled_from(["k", "m"]), st.sampled_from(["Exists", "DoesNotExist"])),
    st.builds(
        lambda key, operator, value: Requirement(key, operator, (value,)),
        st.sampled_from(["k", "m"]),
        st.sampled_from(["Gt", "Lt"]),
        st.sampled_from(["1", "2"]),
    ),
)


@given(st.lists(requirements, max_size=4), st.dictionaries(st.sampled_from(["k", "m"]), words))
def test_a_selector_matches_when_all_requirements_do(wanted: list[Requirement], labels: dict[str, str]) -> None:
    selector = LabelSelector(wanted)
    assert selector.matches(labels) == all(one.matches(labels) for one in wanted)
    again = selectors.parse_labels(str(selector))
    assert again.matches(labels) == selector.matches(labels)


# Fields -------------------------------------------------------------------------------------------------------------


def pod(**spec: Any) -> core_v1_pb2.Pod:
    return core_v1_pb2.Pod(
        metadata=meta_v1_pb2.ObjectMeta(name="a", namespace="default"), spec=core_v1_pb2.PodSpec(**spec)
    )


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("spec.nodeName=n1", True),
        ("spec.nodeName=", False),
        ("spec.nodeName!=n1", False),
        ("spec.nodeName==n1,status.phase!=Failed", True),
        ("metadata.name=a,metadata.namespace=default", True),
        ("metadata.name=a,metadata.name=b", False),
        ("metadata.name=a,metadata.name!=a", False),
        ("status.phase=", True),
        ("spec.hostNetwork=false", True),
        ("spec.hostNetwork=true", False),
        ("metadata.name=a,,", True),
    ],
)
def test_field_selectors(text: str, matches: bool) -> None:
    assert selectors.parse_fields(text, "pods").matches(pod(nodeName="n1")) is matches


def test_equal_fields_are_shown_for_indices() -> None:
    selector = selectors.parse_fields("status.phase!=Failed,spec.nodeName=n1,spec.schedulerName=s", "pods")
    assert selector.equals == {"spec.nodeName": "n1", "spec.schedulerName": "s"}
    assert str(selector) == "spec.nodeName=n1,spec.schedulerName=s,status.phase!=Failed"
    assert not selector.everything
    assert selectors.parse_fields("", "pods").everything


def test_field_values_may_be_escaped() -> None:
    selector = selectors.parse_fields(r"metadata.name=a\,b\=c\\", "leases")
    assert selector.equals == {"metadata.name": r"a,b=c" + "\\"}
    assert selectors.parse_fields(str(selector), "leases").equals == selector.equals


@pytest.mark.parametrize(
    ("text", "resource", "says"),
    [
        ("spec.foo=1", "pods", "field label not supported: spec.foo"),
        ("status.phase=x", "nodes", "field label not supported: status.phase"),
        (
            "spec.holder=x",
            "leases",
            '"spec.holder" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
        ("metadata.name", "pods", "can't understand 'metadata.name'"),
        ("metadata.name=a=b", "pods", "unescaped character"),
        (r"metadata.name=a\x", "pods", "invalid escape sequence"),
    ],
)
def test_field_selectors_that_are_refused(text: str, resource: str, says: str) -> None:
    with pytest.raises(SelectorError) as caught:
        selectors.parse_fields(text, resource)
    assert says in str(caught.value)


def test_every_supported_field_of_every_kind_can_be_read() -> None:
    for row in resources.RESOURCES:
        for field in selectors.supported_fields(row.plural):
            selector = selectors.parse_fields(f"{field}!=never", row.plural)
            assert selector.matches(row.message())


# Nodes and taints ---------------------------------------------------------------------------------------------------


def affinity(*terms: dict[str, Any]) -> Any:
    required = {"nodeSelectorTerms": list(terms)}
    data = {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}
    return selectors.RequiredNodeAffinity(convert.from_json(core_v1_pb2.PodSpec, data))


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


NODE_LABELS = {"zone": "a", "cores": "007", "name": "x"}


@pytest.mark.parametrize(
    ("terms", "matches"),
    [
        ((), False),
        (({},), False),
        ((expression("zone", "In", "a", "b"),), True),
        ((expression("zone", "In", "b"), expression("cores", "Gt", "6")), True),
        ((expression("cores", "Lt", "8"),), True),
        ((expression("cores", "Lt", "7"),), False),
        ((expression("cores", "Gt", "x"),), False),
        ((expression("cores", "Gt", "-1"),), False),
        ((expression("name", "Gt", "1"),), False),
        ((expression("none", "NotIn", "a"),), True),
        ((expression("none", "DoesNotExist"),), True),
        ((expression("zone", "Exists"),), True),
        ((expression("zone", "Like", "a"),), False),
        (({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]},), True),
        (({"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n1"]}]},), False),
        (({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1", "n2"]}]},), False),
        (({"matchFields": [{"key": "metadata.uid", "operator": "In", "values": ["n1"]}]},), False),
        (
            (
                {
                    **expression("zone", "In", "b"),
                    "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}],
                },
            ),
            False,
        ),
    ],
)
def test_required_node_affinity(terms: tuple[dict[str, Any], ...], matches: bool) -> None:
    assert affinity(*terms).matches(NODE_LABELS, "n1") is matches


def test_node_selector_and_affinity_must_both_match() -> None:
    spec = core_v1_pb2.PodSpec(nodeSelector={"zone": "a", "disk": "ssd"})
    wanted = selectors.RequiredNodeAffinity(spec)
    assert not wanted.everything
    assert not wanted.matches({"zone": "a"}, "n")
    assert wanted.matches({"zone": "a", "disk": "ssd", "more": ""}, "n")
    assert selectors.RequiredNodeAffinity(core_v1_pb2.PodSpec()).everything


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({}, False),
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "operator": "Equal", "value": "w"}, False),
        ({"key": "k", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"key": "other", "operator": "Exists"}, False),
        ({"value": "v"}, True),
        ({"key": "k", "operator": "Gt", "value": "v"}, False),
    ],
)
def test_tolerations(toleration: dict[str, Any], tolerated: bool) -> None:
    taint = core_v1_pb2.Taint(key="k", value="v", effect="NoSchedule")
    message = convert.from_json(core_v1_pb2.Toleration, toleration)
    assert selectors.tolerates(message, taint) is tolerated
    found = selectors.untolerated_taint([taint], [message], ("NoSchedule",))
    assert (found is None) is tolerated
    assert selectors.untolerated_taint([taint], [], ("NoExecute",)) is None
