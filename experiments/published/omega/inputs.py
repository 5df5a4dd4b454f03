"""The published files: the tables of figures, and the job lists. kemu ships none of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from experiments.published.omega import jobs

EXPECTED, SPREAD = "expected.csv", "expected-spread.csv"
_SUBFOLDERS = ("", "published/omega", "omega")


class InputsMissing(Exception):
    """What is missing, and where it was looked for."""


def find(folders: Iterable[Path]) -> Path:
    """The folder with the files: one of these, or ``published/omega`` in it. Raises InputsMissing."""
    places = [folder / sub for folder in folders for sub in _SUBFOLDERS]
    for place in places:
        if (place / EXPECTED).is_file() and (place / SPREAD).is_file():
            return place
    looked = ", ".join(str(place) for place in places) or "no folder at all"
    raise InputsMissing(
        f"{EXPECTED} and {SPREAD} are not there: looked in {looked}. They hold what google/cluster-scheduler-simulator "
        "reports for the job lists of this experiment, and come with those lists (jobs-*.csv.gz), which kemu draws "
        "itself. Name their folder with --data DIR"
    )


def differing_lists(folder: Path) -> Iterator[str]:
    """The published job lists that are not those drawn here."""
    for mean in jobs.WORKLOADS:
        for seed in (1, 2, 3):
            name = jobs.file_name(mean, seed)
            if not (folder / name).is_file():
                yield f"{name} is not in {folder}"
            elif jobs.read(folder, mean, seed) != jobs.drawn(mean, seed):
                yield f"{name} is not the list that is drawn for seed {seed}, duration {mean}"
