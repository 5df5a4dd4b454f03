"""A search from beginning to end, as ``kemu fuzz`` makes it.

    with Search(Options(out, seed=7, scenarios=1000)) as search:
        for record in search.go():
            ...
        for failure in search.failures():
            print(failure.file, failure.command)

The same seed gives the same scenarios, however many processes carry them out.
"""

from __future__ import annotations

import itertools
import shlex
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kemu import errors
from kemu.emulated.objects.conversion import user_files
from kemu.emulated.settings import documents
from kemu.lab.exploration import executions, workers
from kemu.lab.exploration.shrinking import texts
from kemu.lab.fuzz import features, fresh, relations, shrinking, trials
from kemu.lab.fuzz.coverage import Coverage
from kemu.lab.fuzz.trials import Finding, Record
from kemu.runtime.runlog import folders

LIMIT_S = 180.0
"""Real time for one scenario with all of its runs."""
EVERY_FRESH = 50
"""Every fiftieth scenario is run in fresh processes, too."""
MOST_SHRUNK = 10
"""Ways of failing that are made small; the others are left as they were drawn."""
BY_THEMSELVES = ("refused", executions.BROKEN)
"""What ``kemu run`` shows, beside checks."""


@dataclass(frozen=True)
class Options:
    """What a search is asked for."""

    out: Path
    seed: int = 0
    scenarios: int = 0
    """0: no limit but the time."""
    seconds: float = 0.0
    jobs: int = 1
    only: int | None = None
    """Only the scenario with this number."""
    first: int = 0
    """The number of the first one."""
    pinned: Mapping[str, str] = field(default_factory=dict)
    """Features that all scenarios have."""
    shrinks: bool = True


@dataclass(frozen=True)
class Failure:
    """A way of failing, as it is left."""

    id: str
    cause: str
    detail: str
    numbers: tuple[int, ...]
    """Numbers of the scenarios that fail so."""
    relation: str
    file: Path | None
    command: str
    """Shows it: of the file, or draws it again."""
    tried: int
    """Documents that were tried to make it small."""

    def data(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "cause": self.cause,
            "detail": self.detail,
            "scenarios": list(self.numbers),
            "relation": self.relation,
            "file": str(self.file) if self.file is not None else "",
            "command": self.command,
        }


class Search:
    """One search. ``executor``: other workers than processes of its own. Raises KemuError for what is no feature."""

    def __init__(self, options: Options, executor: workers.Executor | None = None) -> None:
        features.Plan(options.seed, options.pinned)  # complains of what is no feature
        self._options = options
        jobs = options.jobs
        self._executor = executor or (workers.Inline() if jobs == 1 else workers.Workers(jobs, limit_s=LIMIT_S))
        self._groups: dict[tuple[str, str, str], list[tuple[int, Finding]]] = {}
        self.coverage = Coverage()
        self.scenarios = 0
        self.seconds = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._executor.close()

    @property
    def ways(self) -> int:
        """Ways of failing, so far."""
        return len(self._groups)

    def go(self) -> Iterator[Record]:
        """Carries scenarios out, in their order."""
        options, begun_s = self._options, time.monotonic()
        source = trials.Source(options.seed, options.pinned)
        done: list[int] = []
        for record in self._executor.run(source, self._tasks(begun_s)):
            self.scenarios += 1
            self.seconds = time.monotonic() - begun_s
            self.coverage.add(record)
            for finding in record.findings:
                self._take(record.number, finding)
            if record.number % EVERY_FRESH == EVERY_FRESH - 1 and not record.findings and not record.is_long:
                done.append(record.number)
            yield record
        for number in fresh.differing(options.seed, done, options.pinned) if done else ():
            finding = Finding(trials.DIGEST, "processes", "two processes under other hash seeds differ", {})
            self._take(number, finding)

    def _tasks(self, begun_s: float) -> Iterator[trials.Trial]:
        options = self._options
        if options.only is not None:
            yield trials.Trial(options.only)
            return
        for number in itertools.count(options.first):
            if options.scenarios and number - options.first >= options.scenarios:
                return
            if options.seconds and time.monotonic() - begun_s >= options.seconds:
                return
            yield trials.Trial(number)

    def _take(self, number: int, finding: Finding) -> None:
        self._groups.setdefault((*finding.key, finding.relation), []).append((number, finding))

    def failures(self, kemu: str = "kemu", first: int = 0, *, hurries: bool = False) -> Iterator[Failure]:
        """Makes each way of failing small, and leaves it as a file. ``kemu``: how the program is called; ``first``: the
        number of the first one; ``hurries``: leave them as they were drawn."""
        groups = itertools.islice(self._groups.items(), first, None)
        for place, ((name, cause, relation), found) in enumerate(groups, first):
            number, finding = found[0]
            numbers = tuple(dict.fromkeys(one for one, _ in found))
            command, file, tried = self.drawn_again(number, kemu), None, 0
            if finding.data:
                data = finding.data
                if self._options.shrinks and place < MOST_SHRUNK and not hurries:
                    data, tried = smaller(finding)
                folder = self._options.out / f"{place + 1:02}-{name}"
                file = leave(folder, data, finding, kemu)
                command = command_for(finding, file, kemu)
            yield Failure(name, cause, finding.detail, numbers, relation, file, command, tried)

    def drawn_again(self, number: int, kemu: str = "kemu") -> str:
        """The command that draws one scenario again."""
        words = [kemu, "fuzz", "--seed", str(self._options.seed), "--only", str(number)]
        for name, level in self._options.pinned.items():
            words += ["--with", f"{name}={level}"]
        return shlex.join(words)


def smaller(finding: Finding) -> tuple[dict[str, Any], int]:
    """A document that fails in the same way."""

    def fails(data: dict[str, Any]) -> bool:
        try:
            found, _ = trials.judged(
                data, [finding.relation] if finding.relation else [], again=finding.id == trials.DIGEST
            )
        except errors.KemuError:
            return False
        return any(one.key == finding.key for one in found)

    return shrinking.shrink(finding.data, fails)


def command_for(finding: Finding, file: Path, kemu: str = "kemu") -> str:
    """Shows that a file fails."""
    from kemu.lab.checks import registry

    shown = folders.shown(file)
    if finding.id in registry.IDS or finding.id in BY_THEMSELVES:
        return shlex.join([kemu, "run", shown])
    words = [kemu, "fuzz", shown]
    return shlex.join([*words, "--relation", finding.relation] if finding.relation else words)


def leave(folder: Path, data: dict[str, Any], finding: Finding, kemu: str = "kemu") -> Path:
    """Writes the scenario, with what it shows above it."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "scenario.yaml"
    lines = [f"# {command_for(finding, Path(file.name), kemu)}", f"# {finding.id}: {finding.detail}"]
    text = texts.text(data)
    (read,) = documents.parse(text, file.name)
    assert read.data == data, "the text says something else than the document"
    file.write_text("\n".join(line.replace("\n", " ")[:400] for line in lines) + "\n" + text)
    return file


def of_file(file: Path, names: tuple[str, ...]) -> list[Finding]:
    """What is wrong with the scenario in a file, by itself and under these relations. Raises KemuError."""
    for name in names:
        if name not in (*relations.RELATIONS, trials.CLIENTS):
            known = ", ".join((*relations.RELATIONS, trials.CLIENTS))
            raise errors.KemuError(f"{name}: there is no such relation: {known}")
    try:
        text = user_files.read_text(file)
    except user_files.FileProblem as error:
        raise errors.KemuError(f"{file} {error}") from None
    found = documents.parse(text, str(file))
    if len(found) != 1:
        raise errors.KemuError(f"{file}: has {len(found)} documents, not one scenario")
    return trials.judged(found[0].data, names)[0]
