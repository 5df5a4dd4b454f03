"""YAML is read as Kubernetes reads it, and every value remembers its place."""

from __future__ import annotations

import math

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kemu import errors
from kemu.emulated.settings import documents


def read(text: str) -> documents.Document:
    (document,) = documents.parse(text, "file.yaml")
    return document


def only_problem(text: str) -> errors.Problem:
    with pytest.raises(errors.ScenarioError) as caught:
        documents.parse(text, "file.yaml")
    (problem,) = caught.value.problems
    return problem


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("on", True),
        ("Off", False),
        ("yes", True),
        ("NO", False),
        ("true", True),
        ("y", "y"),
        ("~", None),
        ("", None),
        ("10", 10),
        ("-3", -3),
        ("1_000", 1000),
        ("0x1F", 31),
        ("010", 8),
        ("09", "09"),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1:30", "1:30"),
        ("2000-01-01", "2000-01-01"),
        ("100Mi", "100Mi"),
        ("'10'", "10"),
        ('"on"', "on"),
        ("|\n  text\n", "text\n"),
    ],
)
def test_a_scalar_means_what_it_means_to_kubernetes(text: str, value: object) -> None:
    found = read(f"key: {text}").data["key"]
    assert found == value
    assert type(found) is type(value)


def test_infinity_is_a_number() -> None:
    assert read("key: -.inf").data["key"] == -math.inf


def test_every_value_and_key_has_its_place() -> None:
    document = read("a:\n  - {b: 1, c: [x, y]}\n")
    place = document.place(("a", 0, "c", 1))
    assert (place.line, place.column) == (2, 19)
    place = document.place(("a", 0, "c"))
    assert (place.key_line, place.key_column, place.line, place.column) == (2, 12, 2, 15)


def test_what_does_not_exist_has_the_place_of_what_comes_closest() -> None:
    document = read("a:\n  b: {c: 1}\n")
    assert document.place(("a", "b", "d", 3)).line == 2
    assert document.problem(("a", "b", "d"), "no").path == "a.b.d"


def test_a_key_that_stands_twice_is_an_error() -> None:
    problem = only_problem("a:\n  b: 1\n  c: 2\n  b: 3\n")
    assert (problem.line, problem.column, problem.path) == (4, 3, "a.b")
    assert "twice" in problem.message
    assert "line 2" in problem.suggestion


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a: ]", "not YAML"),
        ("a: &x [*x]", "contains itself"),
        ("a: !!python/object:os.system x", "tag"),
        ("a: *nowhere", "not YAML"),
        ("? [a]\n: b", "plain word"),
    ],
)
def test_what_is_not_plain_yaml_is_refused_with_its_place(text: str, what: str) -> None:
    problem = only_problem(text)
    assert what in problem.message
    assert problem.line == 1


def test_anchors_and_merges_work() -> None:
    assert read("base: &b {x: 1, y: 2}\nother: {<<: *b, y: 3}\n").data["other"] == {"y": 3, "x": 1}


def test_what_is_merged_may_merge_itself() -> None:
    text = "a: &a {x: 1, y: 1, z: 1}\nb: &b {<<: *a, y: 2}\nc: {<<: [*b, {w: 4, x: 9}], z: 3}\n"
    assert read(text).data["c"] == {"z": 3, "y": 2, "x": 1, "w": 4}


def test_nothing_is_merged_into_itself() -> None:
    assert "contains itself" in only_problem("a: &a {x: 1, <<: *a}\n").message


def test_merges_of_merges_do_not_explode() -> None:
    text = "a0: &a0 {x: 1}\n"
    text += "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}\n" for n in range(1, 30))
    assert "excessive aliasing" in only_problem(text).message


def test_an_explosion_of_aliases_is_refused() -> None:
    text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    text += "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9))
    assert "excessive aliasing" in only_problem(text).message


def test_a_file_that_is_not_there(tmp_path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(errors.ScenarioError, match="cannot be read"):
        documents.read(tmp_path / "nowhere.yaml")


def test_a_path_in_words_leads_to_the_value() -> None:
    data = {"metadata": {"labels": {"app.kubernetes.io/name": "x"}}, "spec": {"containers": [{"name": "main"}]}}
    follow = documents.follow
    assert follow(data, "spec.containers[0].name") == (("spec", "containers", 0, "name"), "")
    assert follow(data, "metadata.labels[app.kubernetes.io/name]")[0][-1] == "app.kubernetes.io/name"
    assert follow(data, "metadata.labels.app.kubernetes.io/name")[0][-1] == "app.kubernetes.io/name"
    assert follow(data, "spec.containers[main].name")[0] == ("spec", "containers", 0, "name")
    assert follow(data, "spec.containers[0].image") == (("spec", "containers", 0), ".image")
    assert follow(data, "spec.containers[7].image") == (("spec", "containers"), "[7].image")


_plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("abc xyz:,[]{}#'\"-01.\n") | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc.[]/", min_size=1), inner, max_size=4),
    max_leaves=20,
)


@given(_plain)
def test_what_is_dumped_is_read_back(data: object) -> None:
    text = yaml.safe_dump({"key": data}, default_flow_style=None)
    found = read(text).data["key"]
    assert found == data


@given(_plain)
def test_every_value_has_a_place(data: object) -> None:
    document = read(yaml.safe_dump({"key": data}))

    def walk(value: object, path: documents.Path) -> None:
        assert path in document.places
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for step, item in items:
            walk(item, (*path, step))

    walk(document.data, ())
