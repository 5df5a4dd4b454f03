"""What a change of Kubernetes' version does to files, and what is said of it."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.upgrades import __main__ as command
from tests.upgrades import decisions, documents, modules, protos, recorders
from tests.upgrades.modules import UpgradeError
from tests.upgrades.recorders import Recorder

OURS = """// Things.
// Field names and numbers are those of Kubernetes (v1.36).
syntax = "proto2";

package kemu.k8s.core.v1;

// One of ours.
message Custom {
  // Said of the field.
  optional string json = 1;
}

message Spec {
  optional string name = 1;
  repeated string zones = 2;
}
"""
BEFORE = """
message Spec {
  // As Kubernetes says.
  optional string name = 1;

  // kemu does without.
  optional string unused = 9;

  repeated string zones = 2;
}
"""
AFTER = """
message Extra {
  optional Inner inner = 1;
}

message Inner {
}

message Spec {
  optional string name = 1;

  optional .k8s.io.apimachinery.pkg.apis.meta.v1.Time since = 3;

  optional Extra extra = 4;

  optional string unused = 9;

  repeated int64 zones = 2;
}

message Thing {
  optional .k8s.io.apimachinery.pkg.apis.meta.v1.ObjectMeta metadata = 1;
}

message ThingList {
  optional .k8s.io.apimachinery.pkg.apis.meta.v1.ListMeta metadata = 1;
}
"""


def _messages(text: str) -> dict[str, protos.Message]:
    return protos.read(text, {("Spec", "extra")}).messages


def test_a_file_of_messages_is_written_as_it_was() -> None:
    for path in sorted((command.ROOT / protos.FOLDER).glob("*_v*.proto")):
        text = path.read_text()
        assert protos.read(text).text() == text, path.name


def test_messages_follow_those_of_kubernetes_and_come_back() -> None:
    file = protos.read(OURS)
    changes = [str(one) for one in protos.changed("core.v1", file, _messages(BEFORE), _messages(AFTER))]
    assert changes == [
        "core.v1.Spec: + optional .kemu.k8s.meta.v1.Time since = 3;",
        "core.v1.Spec: + optional Extra extra = 4 [(kemu.k8s.inline) = true];",
        "core.v1.Spec: zones: repeated string zones = 2; -> repeated int64 zones = 2;",
        "core.v1.Thing: is a new kind: metadata",
        "core.v1.Extra: is new: inner",
        "core.v1.Inner: is new: ",
    ]
    assert list(file.messages) == ["Custom", "Extra", "Inner", "Spec", "Thing"]
    assert list(file.messages["Spec"].fields) == ["name", "since", "extra", "zones"]  # `unused` is not taken up
    protos._imports(file, "core_v1")
    assert file.head[-2:] == ['import "kemu/k8s/meta_v1.proto";', 'import "kemu/k8s/options.proto";']
    protos.changed("core.v1", file, _messages(AFTER), _messages(BEFORE))
    assert list(file.messages) == ["Custom", "Spec"]
    protos._imports(file, "core_v1")
    assert file.text() == OURS
    without_thing = {name: one for name, one in _messages(AFTER).items() if name != "Thing"}
    protos.changed("core.v1", file, _messages(BEFORE), without_thing)
    assert list(file.messages) == ["Custom", "Extra", "Inner", "Spec"]


def test_differences_name_what_comes_goes_and_changes() -> None:
    was = documents.facts("kind v1 Pod core.v1.Pod\nstruct core.v1.Pod\n\tspec core.v1.PodSpec\n\tgone *bool always\n")
    now = documents.facts("kind v1 Pod core.v1.Pod\nstruct core.v1.Pod atomic\n\tspec core.v1.PodSpec\n\t+ v1.In\n")
    assert list(documents.differences(was, now)) == [
        "  core.v1.Pod: struct -> struct atomic",
        "+ core.v1.Pod.+ v1.In",
        "- core.v1.Pod.gone: was *bool always",
    ]


def test_a_rule_of_a_role_is_told_apart() -> None:
    def roles(*resources: str) -> str:
        rule = {"verbs": ["get", "list"], "groups": [""], "resources": list(resources)}
        return json.dumps({"clusterRoles": {"view": [rule]}, "clusterBindings": [], "roles": {}, "bindings": {}})

    assert list(documents.differences(documents.roles(roles("pods")), documents.roles(roles("pods", "nodes")))) == [
        "- view: get,list pods of the core group",
        "+ view: get,list pods,nodes of the core group",
    ]


class _Answers(Recorder):
    """Says of each case what a function says."""

    def __init__(self, answers: dict[str, object]) -> None:
        super().__init__("v1.99.0", Path("none"))
        self._answers = answers

    def ask(self, kind: str, lines: object = (), timeout_s: float = 0) -> str:
        assert isinstance(lines, object)
        found = []
        for line in list(lines):  # type: ignore[call-overload]
            case = json.loads(line)["case"]
            if case["id"] == "broken":
                raise UpgradeError("recorder scheduler (v1.99.0): /dev/stdin:1: it panics")
            if case["id"] in self._answers:
                found.append(json.dumps({"case": case, "expect": self._answers[case["id"]]}))
        return "\n".join(found)


def test_cases_that_are_answered_otherwise_are_grouped(tmp_path: Path) -> None:
    file = tmp_path / "scheduler" / "fit.jsonl.gz"
    file.parent.mkdir()

    def answer(plugin: str) -> dict[str, object]:
        return {"rejected": {"node-1": {"plugin": plugin, "reasons": ["no"]}}, "scores": {"Fit": 1}}

    recorded = [{"case": {"id": name}, "expect": answer("A")} for name in ("a", "b", "c", "broken", "several", "d")]
    file.write_bytes(gzip.compress("\n".join(map(json.dumps, recorded)).encode()))
    after = _Answers({"a": answer("A"), "b": answer("B"), "c": answer("B"), "d": answer("C")})
    before = _Answers({"b": answer("A"), "c": answer("A"), "d": answer("C")})
    family = decisions.ask(file, "scheduler", after, before, 0)
    assert list(family.lines()) == [
        "scheduler/fit: 2 of 6 cases are answered alike",
        "    2 x rejected.* (B).plugin: A -> B (as in b)",
        "    1 x no answer: it panics (as in broken)",
        "    1 x no answer: several different answers (as in several)",
    ]
    assert [json.loads(line)["case"]["id"] for line in gzip.decompress(family.recorded()).splitlines()] == [*"abcd"]


def test_a_function_that_does_not_compile_says_so(tmp_path: Path) -> None:
    jobs = 'import (\n\t"fmt"\n)\n\nfunc (w *world) begin(kind string) error {\n\tx := 1\n\tx.y()\n\treturn nil\n}\n'
    (tmp_path / "jobs.go").write_text(jobs)
    (tmp_path / "facts.go").write_text("var kinds = []any{v1.Old{}, v1.New{}, v1.Other{}}\n")
    recorder = Recorder("v1.99.0", tmp_path / "recorder")
    said = '# kemu.dev\n./jobs.go:2:2: "fmt" imported and not used\n./jobs.go:6:2: no\n./jobs.go:7:4: x.y undefined\n'
    assert recorders.mend(tmp_path, said + "./facts.go:1:9: undefined: v1.New", recorder)
    assert list(recorder.without) == ["jobs.go: begin"]
    assert recorder.roots == ["v1.New"]
    assert (tmp_path / "facts.go").read_text() == "var kinds = []any{v1.Old{}, v1.Other{}}\n"
    panics = '\tpanic("begin in jobs.go does not compile with this version")\n'
    head = 'import (\n\t_ "fmt"\n)\n\nfunc (w *world) begin(kind string) error {\n'
    assert (tmp_path / "jobs.go").read_text() == f"{head}{panics}}}\n"
    assert not recorders.mend(tmp_path, "./jobs.go:5:9: undefined: world", recorder)


@pytest.mark.parametrize(
    ("was", "now", "alike"),
    [
        ({"id": 1, "outcomes": ["a", "b"]}, {"id": 1, "outcomes": ["b"]}, True),
        ({"id": 1, "outcomes": ["a", "b"]}, {"id": 1, "outcomes": ["b", "c"]}, False),
        ({"id": 1, "outcomes": ["a"]}, {"id": 2, "outcomes": ["a"]}, False),
        ({"score": 1}, {"score": 2}, False),
    ],
)
def test_possible_outcomes_that_chance_did_not_show(was: object, now: object, alike: bool) -> None:
    assert decisions._are_alike(was, now) is alike


@pytest.mark.parametrize("text", ["1.37.0", "v1.37", "v2.0.0", "main", "v1.37.0; ls"])
def test_what_is_no_version_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UpgradeError, match="is no version of Kubernetes"):
        modules.checked(text)
