"""Takes the repository to another version of Kubernetes, and says what that changes.

    scripts/upgrade v1.37.0                 make everything anew in a folder of the cache; the repository stays as is
    scripts/upgrade v1.37.0 --write         and put it into the repository
    scripts/upgrade v1.37.0 --part gates    one part alone: protos, gates, served, schemas, facts, roles, decisions …
    scripts/upgrade v1.37.0 --cases 20      ask 20 recorded cases of each family, not all
    scripts/upgrade v1.37.0 --recorder DIR  with a copy of the recorder that is mended for that version

The modules come by the ordinary client of Go's modules. What changes is printed as Markdown, and kept in changes.md.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from kemu.lab.conformance import gates
from tests.conformance import test_data
from tests.upgrades import decisions, documents, modules, protos, recorders
from tests.upgrades.modules import UpgradeError
from tests.upgrades.recorders import Recorder

ROOT = Path(__file__).parents[2]
FACTS = Path("kemu/emulated/objects/facts/facts.txt")
ROLES = Path("kemu/emulated/apiserver/authorization/roles.json")
GATES = Path("kemu/lab/conformance/gates.tsv")
VERSION = Path("kemu/emulated/objects/facts/__init__.py")
SCHEMAS = Path("tests/gateway/openapi/real.json.gz")
RECORDER = Path("tests/conformance/recorder")
LISTED = Path("test/compatibility_lifecycle/reference/versioned_feature_list.yaml")
_MENTIONS = ("kemu", "scripts", "tests", "hunts", "docs", "README.md")
_UNTOLD = ("docs/decisions.md", "docs/findings.md", "docs/museum/", "tests/conformance/recorder/go.")


class Upgrade:
    """From the version of ``tree`` to ``version``; what is made goes into ``made``, by the same paths."""

    def __init__(self, tree: Path, version: str, work: Path, cases: int, recorder: Path | None = None) -> None:
        self.tree = tree
        self.version = modules.checked(version)
        self.before = gates.known(tree / GATES).version
        self.work = work
        self.made = work / "made"
        self.cases = cases
        self._sources = recorder
        self._recorders: dict[str, Recorder | UpgradeError] = {}

    def put(self, path: Path, content: str | bytes) -> None:
        file = self.made / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)

    def recorder(self, version: str) -> Recorder:
        if version not in self._recorders:
            print(f"building the recorder with {version}", file=sys.stderr)
            folder = self.work / f"recorder-{version}"
            own = version == self.before
            sources = self.tree / RECORDER if own or self._sources is None else self._sources
            try:
                self._recorders[version] = recorders.build(sources, version, folder, is_own=own)
            except UpgradeError as error:
                self._recorders[version] = error
            if not own:
                for name in ("go.mod", "go.sum"):
                    self.put(RECORDER / name, (folder / name).read_bytes())
        built = self._recorders[version]
        if isinstance(built, UpgradeError):
            raise built
        return built

    @property
    def lacking(self) -> list[str]:
        """What of the recorder does not compile with the version."""
        built = self._recorders.get(self.version)
        if not isinstance(built, Recorder):
            return []
        functions = [f"{function}: {said}" for function, said in sorted(built.without.items())]
        return functions + [f"facts.go: there is no {root}" for root in sorted(set(built.roots))]

    def messages(self) -> Iterator[str]:
        shutil.rmtree(self.made / protos.FOLDER, ignore_errors=True)
        shutil.copytree(self.tree / protos.FOLDER, self.made / protos.FOLDER)
        yield from map(str, protos.upgrade(self.made, self.before, self.version))

    def facts(self) -> Iterator[str]:
        printed = self.recorder(self.version).ask("facts")
        self.put(FACTS, printed)
        was = documents.facts((self.tree / FACTS).read_text())
        yield from documents.differences(was, documents.facts(printed))

    def roles(self) -> Iterator[str]:
        printed = self.recorder(self.version).ask("roles")
        self.put(ROLES, printed)
        yield from documents.differences(documents.roles((self.tree / ROLES).read_text()), documents.roles(printed))

    def defaults(self) -> Iterator[str]:
        was, now = (documents.defaults(self.recorder(one).ask("defaults")) for one in (self.before, self.version))
        yield from documents.differences(was, now)

    def gates(self) -> Iterator[str]:
        known = gates.known(self.tree / GATES)
        listed = gates.read(modules.kubernetes(self.version) / LISTED, self.version)
        fresh = gates.updated(known, listed)
        self.put(GATES, "")
        gates.write(fresh, self.made / GATES)
        yield from gates.differences(known, listed)

    def served(self) -> Iterator[str]:
        was, now = (documents.resources(modules.kubernetes(one)) for one in (self.before, self.version))
        yield from documents.differences(was, now)

    def schemas(self) -> Iterator[str]:
        was, now = (documents.schemas(modules.kubernetes(one)) for one in (self.before, self.version))
        self.put(SCHEMAS, documents.packed(now))
        flat = [{name: json.dumps(one, sort_keys=True) for name, one in each.items()} for each in (was, now)]
        for line in documents.differences(*flat):
            yield line.split(": ")[0]

    def decisions(self) -> Iterator[str]:
        recorder = self.recorder(self.version)
        for file, kind in decisions.files(self.tree):
            print(f"asking {file.relative_to(self.tree)}", file=sys.stderr)
            family = decisions.ask(file, kind, recorder, self.recorder(self.before), self.cases)
            yield from family.lines()
            if family.otherwise and not self.cases:
                self.put(file.relative_to(self.tree), family.recorded())

    def mentions(self) -> Iterator[str]:
        """Where the version stands in words."""
        names = [part for part in _MENTIONS if (self.tree / part).exists()]
        pattern = rf"\b{re.escape(self.before)}\b|\bv?{re.escape(modules.minor(self.before))}\b"
        done = subprocess.run(
            ["git", "grep", "-IcE", pattern, "--", *names], cwd=self.tree, capture_output=True, text=True, check=False
        )
        for line in done.stdout.splitlines():
            if not line.startswith(_UNTOLD) and not line.partition(":")[0].endswith((".csv", ".svg", ".json")):
                yield line

    def write(self) -> None:
        """Puts what was made into the tree, and generates the code of the messages."""
        shutil.copytree(self.made, self.tree, dirs_exist_ok=True)
        version = self.tree / VERSION
        version.write_text(version.read_text().replace(f'"{self.before}"', f'"{self.version}"'))
        generator = self.tree / "scripts/genproto"
        if (self.made / protos.FOLDER).exists() and generator.exists():
            subprocess.run([generator], cwd=self.tree, check=True, env={**os.environ, "PYTHON": sys.executable})
        data = self.tree / decisions.DATA
        if data.exists():
            (data / "manifest.txt").write_text(test_data.manifest(data))


PARTS: dict[str, tuple[str, Callable[[Upgrade], Iterable[str]]]] = {
    "protos": ("Messages and fields (proto/kemu/k8s)", Upgrade.messages),
    "gates": ("Feature gates (gates.tsv; what is new, or has another default, has the word ?)", Upgrade.gates),
    "served": ("Resources that kube-apiserver can serve", Upgrade.served),
    "schemas": ("Schemas (tests/gateway/openapi)", Upgrade.schemas),
    "facts": ("Types: Go, JSON, merging, enums (facts.txt)", Upgrade.facts),
    "roles": ("Roles and bindings of a new cluster (roles.json)", Upgrade.roles),
    "defaults": ("Defaults of objects, of the scheduler and of the kubelet", Upgrade.defaults),
    "decisions": ("Recorded decisions", Upgrade.decisions),
    "mentions": ("Files that name the version, and how many lines of them do: to be read", Upgrade.mentions),
}


def report(upgrade: Upgrade, parts: Iterable[str]) -> Iterator[str]:
    """The list of changes, in Markdown."""
    yield f"# Kubernetes {upgrade.before} -> {upgrade.version}"
    for part in parts:
        title, make = PARTS[part]
        yield f"\n## {title}\n"
        count = 0
        try:
            for line in make(upgrade):
                count += 1
                yield f"    {line}"
        except UpgradeError as error:
            yield f"Not made: {error}"
        else:
            if not count:
                yield "Nothing changes."
    if upgrade.lacking:
        yield f"\n## What the recorder cannot ask of {upgrade.version} before it is mended\n"
        yield from (f"    {one}" for one in upgrade.lacking)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="scripts/upgrade", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("version", help="of Kubernetes, as v1.37.0")
    parser.add_argument(
        "--part", action="append", choices=list(PARTS), help="only this part; more than once for several"
    )
    parser.add_argument("--cases", type=int, default=0, metavar="N", help="cases of each family; 0: all")
    parser.add_argument("--write", action="store_true", help="put what is made into the tree")
    parser.add_argument("--recorder", type=Path, metavar="DIR", help="its sources, where those of the tree do not do")
    parser.add_argument("--tree", type=Path, default=ROOT, metavar="DIR", help="another copy of the repository")
    parser.add_argument("--work", type=Path, metavar="DIR", help="where things are made")
    asked = parser.parse_args()
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    try:
        work = (asked.work or cache / "kemu" / "upgrades" / modules.checked(asked.version)).resolve()
        upgrade = Upgrade(asked.tree.resolve(), asked.version, work, asked.cases, asked.recorder)
        shutil.rmtree(upgrade.made, ignore_errors=True)
        work.mkdir(parents=True, exist_ok=True)
        with (work / "changes.md").open("w") as kept:
            for line in report(upgrade, asked.part or PARTS):
                print(line, flush=True)
                kept.write(f"{line}\n")
        if asked.write:
            upgrade.write()
            print(f"written to {upgrade.tree}", file=sys.stderr)
        else:
            print(f"made in {upgrade.made}", file=sys.stderr)
    except UpgradeError as error:
        print(f"upgrade: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        sys.exit(main())
