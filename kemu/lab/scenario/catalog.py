"""The scenarios that come with kemu, and how to find one by name."""

from __future__ import annotations

from pathlib import Path

import kemu
from kemu.errors import KemuError
from kemu.runtime import words
from kemu.runtime.runlog import folders

_OF_FOLDER = "scenario.yaml"


def folder() -> Path:
    """Where the shipped scenarios are: in the package when installed, beside it in a checkout."""
    package = Path(kemu.__file__).parent
    installed = package / "scenarios"
    return installed if installed.is_dir() else package.parent / "scenarios"


def shipped() -> dict[str, Path]:
    """Name (``races/two-schedulers-one-node``) → file, sorted."""
    root = folder()
    return {path.relative_to(root).with_suffix("").as_posix(): path for path in sorted(root.rglob("*.yaml"))}


def find(name: str) -> Path:
    """A file as it is, the scenario of a folder that has one, else a shipped scenario by its whole name, its path, or
    its last part."""
    path = Path(name)
    if path.is_file():
        return path
    if path.is_dir():
        if folders.held_in(path) is not None:
            raise KemuError(
                f"{name}: is the folder of a run: kemu replay {name} runs it again, kemu story {name} tells it"
            )
        if (path / _OF_FOLDER).is_file():
            return path / _OF_FOLDER  # As kemu import writes them.
        inside = sorted(each.as_posix() for each in path.glob("*.y*ml"))
        if inside or "/" in name.strip("/") or name.startswith("."):
            there = f"; there are {', '.join(inside[:10])}" if inside else ", and no scenario is in it"
            raise KemuError(f"{name}: is a folder{there}")
    known = shipped()
    plain = name.removeprefix("scenarios/").removesuffix(".yaml")
    if plain in known:
        return known[plain]
    ends = [key for key in known if key.rpartition("/")[2] == plain]
    if len(ends) == 1:
        return known[ends[0]]
    if len(ends) > 1:
        raise KemuError(f"{name}: several scenarios are called so: {', '.join(ends)}")
    inside = [key for key in known if key.startswith(f"{plain.rstrip('/')}/")]
    if inside:
        raise KemuError(f"{name}: is a folder of scenarios; there are {', '.join(inside)}")
    beside = {each.stem: each.as_posix() for each in sorted(path.parent.glob("*.y*ml"))}
    near_files = [beside[stem] for stem in words.nearest(path.stem, beside, 2)]
    names = [*known, *(key.rpartition("/")[2] for key in known)]
    near = near_files or words.nearest(plain, names, 3, words.ALIKE)
    hint = f"; did you mean {' or '.join(near)}?" if near else "; kemu scenarios list shows what there is"
    raise KemuError(f"{name}: no such file, and no shipped scenario of that name{hint}")
