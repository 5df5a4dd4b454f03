"""What the documents say of features is what the code has.

Each claim pairs words that a document may use with what has to be true of the code for them. A feature that is built
makes its denials wrong, and this test names the places.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kemu.doors.cli import main
from kemu.emulated.kubelet.settings import kubelet_configurations
from kemu.emulated.objects import resources
from kemu.emulated.objects.fields import unsimulated
from kemu.emulated.scheduler.plugins import in_tree
from kemu.messages.v1 import api_pb2
from kemu.runtime import runtimes
from kemu.runtime.faults.kinds import KINDS

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
HISTORY = {"decisions.md"}
"""They tell what was true once."""
NUMBERS = ("no", "one", "two", "three", "four", "five")


def paragraphs() -> Iterator[tuple[str, str]]:
    """Place and text, of documents and of the docstrings of packages; in one line, without marks."""
    for path in [*DOCUMENTS, *sorted((ROOT / "kemu").rglob("__init__.py"))]:
        if path.name in HISTORY:
            continue
        line = 1
        for part in path.read_text().split("\n\n"):
            yield f"{path.relative_to(ROOT)}:{line}", " ".join(part.split())
            line += part.count("\n") + 2


PARAGRAPHS = list(paragraphs())


def subparsers(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The commands below a parser, by name."""
    return next(
        (dict(one.choices) for one in parser._actions if isinstance(one, argparse._SubParsersAction)),
        {},
    )


COMMANDS = subparsers(main.parser())


def serves(kind: str) -> bool:
    return any(row.kind == kind for row in resources.BY_PLURAL.values())


def acts(kind: str) -> bool:
    return serves(kind) and kind not in unsimulated.UNSIMULATED


@dataclass(frozen=True)
class Denial:
    """Words that say that kemu lacks something, and whether the code has it."""

    words: str
    has: Callable[[], bool]


DENIALS = {
    "kubectl": Denial(
        r"clients such as kubectl \|( \w+ \|){4} no \||an API server; kemu is none", lambda: "up" in COMMANDS
    ),
    "server-side apply": Denial(
        r"(?i)server-side apply\W+is not served|no server-side apply|managed fields are kept as clients write them",
        lambda: api_pb2.PatchRequest.APPLY > 0,
    ),
    "certificates": Denial(
        r"there are no (client )?certificates", lambda: (ROOT / "kemu/emulated/gateway/authentication").is_dir()
    ),
    "volumes": Denial(r"kemu has no volumes|no volumes to bind", lambda: acts("PersistentVolumeClaim")),
    "leader election": Denial(r"[Tt]here is no leader election", lambda: acts("Lease")),
    "quotas": Denial(r"kemu has no quotas|no ResourceQuota", lambda: acts("ResourceQuota")),
    "probes": Denial(
        r"[Pp]robes are not simulated|has no probes", lambda: (ROOT / "kemu/emulated/kubelet/probes").is_dir()
    ),
    "readiness gates": Denial(r"(?i)does not simulate:[^.]*readiness gates", lambda: True),
    "autoscaling of pods": Denial(
        r"no controller acts on HorizontalPodAutoscalers|kemu has no autoscaler of pods",
        lambda: (ROOT / "kemu/emulated/autoscaler/horizontal").is_dir(),
    ),
    "custom resources": Denial(r"no custom resources", lambda: serves("CustomResourceDefinition")),
    "devices": Denial(r"[Dd]evices are not allocated|There are no ResourceClaims", lambda: acts("ResourceClaim")),
    "memcg notification": Denial(
        r"memory pressure is noticed at the kubelet's next look",
        lambda: "kernelMemcgNotification" in Path(kubelet_configurations.__file__).read_text(),
    ),
}


@pytest.mark.parametrize("feature", DENIALS)
def test_no_document_denies_what_there_is(feature: str) -> None:
    denial = DENIALS[feature]
    if denial.has():
        assert not [place for place, text in PARAGRAPHS if re.search(denial.words, text)]


def test_a_denial_is_found() -> None:
    """The words above are those of sentences that once stood in the documents."""
    stale = {
        "kubectl": "| clients such as kubectl | yes | yes | yes | no | no |",
        "server-side apply": "* **Server-side apply** is not served, and managed fields are kept as clients write them",
        "certificates": "there are no certificates, no tokens of service accounts",
        "volumes": "Do nothing here: kemu has no volumes to bind, no resource claims",
        "leader election": "* There is no leader election, no profiling",
        "readiness gates": "does not simulate: dynamic resource allocation, readiness gates",
    }
    for feature, text in stale.items():
        assert re.search(DENIALS[feature].words, text), feature


def test_documents_count_the_runtimes_right() -> None:
    count = len(runtimes.NAMES)
    wrong = [
        place
        for place, text in PARAGRAPHS
        for word in re.findall(r"\b(no|one|two|both|three|four|five) (?:\w+ )?runtimes\b", text.lower())
        if word == "both" or NUMBERS.index(word) > count or (word != "one" and NUMBERS.index(word) != count)
    ]
    assert not wrong


def test_the_architecture_tells_of_every_runtime() -> None:
    text = (ROOT / "docs/architecture.md").read_text()
    assert re.findall(r"^\* \*\*(\w+)\*\* ", text, re.MULTILINE)[: len(runtimes.NAMES)] == list(runtimes.NAMES)


def test_every_command_that_documents_name_exists() -> None:
    wrong = []
    for path in DOCUMENTS:
        if path.name in HISTORY:
            continue
        named = re.findall(r"(?:^\$ |`|^    )kemu ([a-z][a-z-]*)\b", path.read_text(), re.MULTILINE)
        wrong += [f"{path.relative_to(ROOT)}: kemu {name}" for name in named if name not in COMMANDS]
    assert not wrong


def test_every_command_has_a_document() -> None:
    text = "\n".join(path.read_text() for path in DOCUMENTS)
    # The faults of kemu chaos have a table that is made from the code.
    below = {f"{name} {each}" for name, parser in COMMANDS.items() for each in subparsers(parser) if each not in KINDS}
    assert not [name for name in sorted({*COMMANDS, *below}) if not re.search(rf"kemu {name}\b", text)]


def test_every_plugin_has_a_row_and_every_row_a_plugin() -> None:
    text = (ROOT / "docs/scheduler-configuration.md").read_text()
    section = text.partition("### Plugins and their arguments")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| ([A-Z][^|]*) \|[^|]*\|([^\n]*)\|$", section, re.MULTILINE)
    named = [name.strip() for names, _ in rows for name in names.split(",")]
    own = {name for name in in_tree.IN_TREE if not re.search(rf"\b{name}\b", text)}
    assert sorted(named) == sorted((in_tree.IN_TREE.keys() | in_tree.INERT.keys()) - own)
    idle = {
        name.strip() for names, says in rows if re.search(r"[Dd]o(es)? nothing here", says) for name in names.split(",")
    }
    assert idle <= in_tree.INERT.keys() - in_tree.IN_TREE.keys()


def test_kinds_that_documents_call_stored_only_are_those() -> None:
    """The last list of docs/limits.md is made from the table; other sentences must not contradict it."""
    text = (ROOT / "docs/limits.md").read_text()
    listed = re.findall(r"^\* ([A-Z]\w+): ", text.partition("### Other kinds")[2].partition("\n### ")[0], re.MULTILINE)
    assert sorted(listed) == sorted(kind for kind in unsimulated.UNSIMULATED if serves(kind))


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_no_generated_table_is_empty(path: Path) -> None:
    regions = re.findall(r"<!-- made by scripts/gendocs: ([\w-]+) -->\n(.*?)<!-- end -->", path.read_text(), re.DOTALL)
    assert not [name for name, text in regions if not text.strip()]
