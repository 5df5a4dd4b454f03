"""Recorded cases, asked again of another version: which are answered otherwise, and what is other in the answers."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.upgrades.modules import UpgradeError
from tests.upgrades.recorders import Recorder

DATA = Path("tests/conformance/data")
OTHERS = {
    Path("tests/cel/data"): "cel",
    Path("tests/gateway/tables/recorded.jsonl.gz"): "tables",
    Path("tests/museum/recorded/kubelet.jsonl"): "kubelet",
    Path("tests/museum/recorded/timeline.jsonl"): "timeline",
    Path("tests/museum/recorded/cooperation.jsonl"): "timeline",
}
"""Recorded cases elsewhere, by the recorder's word for them."""
_BY_OTHERS = {"writes/apply": "a real kube-apiserver is asked", "garbage/garbage": "a real cluster is asked"}
_AT_ONCE = 25
"""Cases that are asked by one process: if it fails, they are asked one by one."""
_POSSIBLE = frozenset(("outcomes", "anyOf"))
_NAME = re.compile(r"\d")
_ONE_NAME = re.compile(r"[\w.-]*\d[\w.-]*")


@dataclass
class Family:
    file: Path
    kind: str
    """The recorder's word."""
    asked: int = 0
    same: int = 0
    otherwise: dict[str, list[str]] = field(default_factory=dict)
    """What is other in the answers of cases, by their ids."""
    unanswered: dict[str, str] = field(default_factory=dict)
    """Cases to which the version gives no single answer, or none, and why."""
    unasked: str = ""
    """Why none was asked."""
    answers: dict[str, Any] = field(default_factory=dict)
    """What the version answers, by case."""

    @property
    def name(self) -> str:
        """``scheduler/fit``."""
        return f"{self.file.parent.name}/{self.file.name.split('.')[0]}"

    def recorded(self) -> bytes:
        """The file with the new answers; cases without one are left out."""
        lines = []
        for place, one in enumerate(read(self.file)):
            key = _key(one, place)
            if key not in self.unanswered:
                new = {**one, "expect": self.answers.get(key, one["expect"])}
                lines.append(json.dumps(new, separators=(",", ":"), ensure_ascii=False))
        return gzip.compress("".join(f"{line}\n" for line in lines).encode(), 9, mtime=0)

    def lines(self, most: int = 12) -> Iterator[str]:
        """What is to be read of it."""
        if self.unasked:
            yield f"{self.name}: not asked: {self.unasked}"
            return
        yield f"{self.name}: {self.same} of {self.asked} cases are answered alike"
        wheres = Counter(where for case in self.otherwise.values() for where in set(case))
        for where, count in wheres.most_common(most):
            case = next(name for name, said in self.otherwise.items() if where in said)
            yield f"    {count} x {where} (as in {case})"
        if len(wheres) > most:
            yield f"    and {len(wheres) - most} other differences"
        for why, count in Counter(self.unanswered.values()).most_common(most):
            case = next(name for name, said in self.unanswered.items() if said == why)
            yield f"    {count} x no answer: {why} (as in {case})"


def files(tree: Path) -> Iterator[tuple[Path, str]]:
    """All files of recorded cases, each with the recorder's word for its kind."""
    for file in sorted((tree / DATA).rglob("*.jsonl.gz")):
        kind = "patches" if file.name == "patches.jsonl.gz" else file.parent.name
        yield file, kind
    for path, kind in OTHERS.items():
        found = sorted((tree / path).glob("*.jsonl.gz")) if (tree / path).is_dir() else [tree / path]
        yield from ((file, kind) for file in found if file.exists())


def read(file: Path) -> list[dict[str, Any]]:
    raw = file.read_bytes()
    text = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    return [json.loads(line) for line in text.decode().splitlines() if line.strip()]


def ask(file: Path, kind: str, recorder: Recorder, before: Recorder | None, count: int) -> Family:
    """Asks ``count`` cases of a file, spread evenly over it; all if it is 0. What is not answered as recorded is asked
    of ``before``, too, the recorder of the version of the record: a record may have been written in another form, and
    what is told is how the two versions differ."""
    family = Family(file, kind)
    family.unasked = _BY_OTHERS.get(family.name, "")
    if family.unasked:
        return family
    recorded = read(file)
    chosen = recorded if not count else [recorded[i * len(recorded) // count] for i in range(min(count, len(recorded)))]
    chosen = [one for number, one in enumerate(chosen) if not number or one is not chosen[number - 1]]
    try:
        answers = dict(_answers(chosen, kind, recorder, family.unanswered))
    except UpgradeError as error:
        family.unasked = str(error)
        return family
    family.asked = len(chosen)
    differing = []
    for place, one in enumerate(chosen):
        key = _key(one, place)
        if key in answers:
            family.answers[key] = answers[key]
            if _are_alike(one["expect"], answers[key]):
                family.same += 1
            else:
                differing.append(one)
    again = dict(_answers(differing, kind, before, {})) if before is not None and differing else {}
    for place, one in enumerate(differing):
        key = _key(one, place)
        if key in again and _are_alike(again[key], answers[key]):
            family.same += 1
            del family.answers[key]
        else:
            family.otherwise[key] = list(_wheres(again.get(key, one["expect"]), answers[key], ""))
    return family


def _answers(
    cases: list[dict[str, Any]], kind: str, recorder: Recorder, unanswered: dict[str, str]
) -> Iterator[tuple[str, Any]]:
    """Answers by case. Cases without one are put into ``unanswered``. Raises UpgradeError where no case is answered."""
    failed = 0
    for start in range(0, len(cases), _AT_ONCE):
        some = cases[start : start + _AT_ONCE]
        try:
            given = _asked(some, kind, recorder)
        except UpgradeError as error:
            if "does not compile" in str(error):
                raise UpgradeError(_short(error)) from None
            given = []
            for one in some:
                try:
                    given += _asked([one], kind, recorder)
                except UpgradeError as single:
                    failed += 1
                    unanswered[_key(one, start + some.index(one))] = _short(single)
                    if failed == len(cases[: start + _AT_ONCE]) and failed > _AT_ONCE // 2:
                        raise UpgradeError(_short(single)) from None
        by_case = {_text(one["case"]): one["expect"] for one in given}
        for place, one in enumerate(some, start):
            text = _text(one["case"])
            if text in by_case:
                yield _key(one, place), by_case[text]
            else:
                unanswered.setdefault(_key(one, place), "several different answers")


def _asked(cases: list[dict[str, Any]], kind: str, recorder: Recorder) -> list[dict[str, Any]]:
    printed = recorder.ask(kind, (_text({"case": one["case"]}) for one in cases))
    return [json.loads(line) for line in printed.splitlines()]


def _short(error: UpgradeError) -> str:
    return re.sub(r"^recorder \w+ \([^)]*\): (?:panic: )?|/dev/stdin:\d+: ", "", str(error))[:200]


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _key(one: dict[str, Any], place: int) -> str:
    case = one["case"]
    return str(case.get("id") or case.get("name") or f"#{place}") if isinstance(case, dict) else f"#{place}"


def _are_alike(was: Any, now: Any) -> bool:
    """Whether two answers are the same. Of several possible outcomes, which are found by trying, one answer may have
    fewer than the other."""
    if isinstance(was, dict) and isinstance(now, dict):
        for key in _POSSIBLE & was.keys() & now.keys():
            some, others = ({_text(one) for one in each[key]} for each in (was, now))
            rest = [{name: one for name, one in each.items() if name != key} for each in (was, now)]
            return (some <= others or others <= some) and rest[0] == rest[1]
    return bool(was == now)


def _wheres(was: Any, now: Any, path: str) -> Iterator[str]:
    """What differs, in words that are the same for cases that differ alike: names are left out of paths."""
    if was == now:
        return
    if isinstance(was, dict) and isinstance(now, dict):
        if "plugin" in was and "plugin" in now:
            path = f"{path} ({now['plugin']})"
        for key in sorted(was.keys() | now.keys()):
            at = f"{path}.{'*' if _NAME.search(key) else key}".lstrip(".")
            if key not in was:
                yield f"{at}: new: {_brief(now[key])}"
            elif key not in now:
                yield f"{at}: gone: {_brief(was[key])}"
            else:
                yield from _wheres(was[key], now[key], at)
    elif isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        for old, new in zip(was, now, strict=True):
            yield from _wheres(old, new, f"{path}[]")
    elif isinstance(was, list) and isinstance(now, list):
        yield f"{path}: {len(was)} -> {len(now)} elements"
    elif isinstance(was, str) and isinstance(now, str) and _ONE_NAME.fullmatch(was) and _ONE_NAME.fullmatch(now):
        yield f"{path}: another name"
    elif isinstance(was, bool | int | float) and isinstance(now, bool | int | float) and _NAME.search(str(was)):
        yield f"{path}: another number"
    else:
        yield f"{path}: {_brief(was)} -> {_brief(now)}"


def _brief(value: Any) -> str:
    text = value if isinstance(value, str) else _text(value)
    return text if len(text) <= 120 else f"{text[:117]}..."
