"""What pytest prints of a failed test that has a cluster of the fixture ``kemu_up``.

Role: behind :mod:`pytest_plugin`, which imports this when there is such a test.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kemu.lab.tell import stories
from kemu.lab.up import embedded
from kemu.runtime.runlog import frames

LINES = 40
"""At most, of the story."""


class Reports:
    """Those of one test."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cluster: embedded.Cluster | None = None
        """While it is up."""
        self.has_failed = False


_KEY = pytest.StashKey[Reports]()


@contextmanager
def of(item: pytest.Item, folder: Path, *, keep: bool) -> Iterator[Reports]:
    """While the test has its cluster. ``keep``: the run folder stays, although the test has not failed."""
    reports = item.stash[_KEY] = Reports(folder)
    try:
        yield reports
    except BaseException:
        reports.has_failed = True
        raise
    finally:
        reports.cluster = None
        if not (reports.has_failed or keep):
            shutil.rmtree(folder, ignore_errors=True)


def add_to(report: pytest.TestReport, item: pytest.Item) -> None:
    """What happened, and how to look at it, below the report of a failure."""
    reports = item.stash.get(_KEY, None)
    if reports is None:
        return
    reports.has_failed = True
    if reports.cluster is not None:
        reports.cluster.flush()
    folder = shlex.quote(str(reports.folder))
    lines = [*_story(reports.folder), "", f"the run folder: {folder}"]
    if reports.cluster is not None:
        lines.append("when pytest has ended:")
    lines += [f"  kemu story {folder}", f"  kemu report {folder}", f"  kemu replay {folder}"]
    report.sections.append(("kemu up", "\n".join(lines)))


def _story(folder: Path) -> list[str]:
    if not (folder / frames.FILE_NAME).is_file():
        return ["the cluster did not come up"]
    story = stories.tell(stories.history_of(folder), LINES)
    found = []
    for line in story.lines:
        why = f" ({line.why})" if line.why else ""
        found.append(f"{line.when():>16}  {line.who}: {line.what}{why}")
    return found or ["nothing happened"]
