"""Which test files a change concerns: ``python -m tests.selection [COMMIT]`` names them, a line each.

The change is what differs from the commit at which the branch left main (or COMMIT), with what is not committed yet.

A test file depends on a module if it imports it, at whatever remove, and on the conftest.py files above it. Whoever
has the dotted name of a module between quotes, as for a plugin, depends on it, too; and tests that start processes
depend on the command line. A file that is no Python module concerns whoever has the folder at the root in which it is
between quotes (``"docs"``, ``"hunts/workers"``), of kemu's own modules only those that read it; data below ``kemu`` and
``tests`` belongs to its package. What everything stands on, such as pyproject.toml, concerns all tests.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

import grimp

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("kemu", "tests", "experiments")
PLUGIN = tuple(f"kemu/doors/testing/{name}.py" for name in ("pytest_names", "pytest_plugin"))
"""What pytest loads with kemu, whatever the test."""
ALL = ("pyproject.toml", "scripts/constraints.txt", "scripts/setup", "scripts/test", "tests/conftest.py", *PLUGIN)
"""What all tests stand on."""
NO_USERS = ("kemu._moved", "tests.selection")
"""They name modules that they do not use."""
READ = ("scenarios",)
"""Folders at the root that kemu itself reads: elsewhere in it, words such as ``"hunts"`` mean something else."""
NO_TEST = re.compile(r"^(\.ci/|\.gitignore$|LICENSE$)")
_AT_ONCE = re.compile(r"^from (kemu[\w.]*) import (\w+)", re.MULTILINE)
_QUOTED = re.compile(r"[\"']([\w.-]+)(?:[:/][^\"'\n]*)?[\"']")


class Tree:
    """The modules of a checkout, and who depends on whom."""

    def __init__(self, root: Path = ROOT, packages: Iterable[str] = PACKAGES) -> None:
        """The packages have to be importable, and those of ``root``."""
        self.root = root
        self.packages = tuple(packages)
        self.graph = grimp.build_graph(*self.packages, exclude_type_checking_imports=True, cache_dir=None)
        every = [".".join(names) for names in _AT_ONCE.findall(self.source("tests.conftest").read_text())]
        """What the fixtures of all tests use; not what is imported where a test asks for it."""
        self.naming: dict[str, set[str]] = {}
        """The modules that have a word between quotes, by the word."""
        for module in sorted(self.graph.modules):
            if module in NO_USERS:
                continue
            text = self.source(module).read_text()
            for word in _QUOTED.findall(text):
                self.naming.setdefault(word, set()).add(module)
                if "." in word:
                    self._depends(module, word, f"{word}.__main__")
            *folders, name = module.split(".")
            # Loaded by their names: variants by whoever is beside them, the API by who asks ``kemu`` for its names.
            self._depends(module, ".".join([*folders, "variants"]))
            if not module.startswith("kemu"):
                if "subprocess" in text:
                    self._depends(module, "kemu.__main__", "kemu.doors.cli.main")
                if "kemu" in self.graph.find_modules_directly_imported_by(module):
                    self._depends(module, *self.graph.find_descendants("kemu.doors.api"))
            if name.startswith("test_"):
                self._depends(
                    module, *every, *(".".join([*folders[:n], "conftest"]) for n in range(2, len(folders) + 1))
                )

    def _depends(self, module: str, *others: str) -> None:
        """On those of them that are modules."""
        for other in others:
            if "." in other and other != module and other in self.graph.modules:
                self.graph.add_import(importer=module, imported=other)

    def source(self, module: str) -> Path:
        path = self.root.joinpath(*module.split("."))
        package = path / "__init__.py"
        return package if package.is_file() else path.with_suffix(".py")

    def tests(self) -> list[str]:
        return sorted(path.relative_to(self.root).as_posix() for path in (self.root / "tests").rglob("test_*.py"))

    def concerned(self, changed: Iterable[str]) -> list[str]:
        """The test files that changed files, given by their paths below the root, concern."""
        modules: set[str] = set()
        for path in changed:
            found = self._changed(path)
            if found is None:
                return self.tests()
            modules |= found
        for module in sorted(modules):
            # Who imports a module runs what its packages say, too.
            modules |= self.graph.find_downstream_modules(module, as_package=self.source(module).name == "__init__.py")
        files = {self.source(module).relative_to(self.root).as_posix() for module in modules}
        return [path for path in self.tests() if path in files]

    def _changed(self, path: str) -> set[str] | None:
        """The modules that a changed file changes; None: it may be any."""
        if path in ALL:
            return None
        if NO_TEST.search(path):
            return set()
        first, *rest = PurePosixPath(path).parts
        users = self.naming.get(first, set())
        if first not in READ:
            users = {module for module in users if not module.startswith("kemu.") and module != "kemu"}
        if first not in self.packages:
            return users
        *folders, file = first, *rest
        module = ".".join([*folders, file.removesuffix(".py")]).removesuffix(".__init__")
        if file.endswith(".py") and module in self.graph.modules:
            return self._package(module)
        # One that is gone was somebody's of its package, by its name or as data is; who imported it has changed, too.
        while ".".join(folders) not in self.graph.modules:
            folders.pop()
        if len(folders) > 1:
            return self._package(".".join(folders))
        return users | self._package(first) if first == "experiments" else None

    def _package(self, module: str) -> set[str]:
        """A module, with all that are in it if it is a package."""
        inside = self.graph.find_descendants(module) if self.source(module).name == "__init__.py" else set()
        return {module, *inside}


def changed(root: Path, commit: str | None = None) -> list[str]:
    """The paths of files that differ from a commit, by default the one at which the branch left main, and of those that
    git does not know yet. Raises ValueError where there is no such commit."""
    since = git(root, "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}") if commit else _branched(root)
    differing = git(root, "diff", "--name-only", "--no-renames", "-z", *since)
    untracked = git(root, "ls-files", "--others", "--exclude-standard", "-z")
    return sorted({path for path in "".join([*differing, *untracked]).split("\0") if path})


def _branched(root: Path) -> list[str]:
    for main in ("origin/main", "main"):
        try:
            return git(root, "merge-base", "HEAD", main)
        except ValueError:
            continue
    raise ValueError("there is no branch main here: name a commit")


def git(root: Path, *arguments: str) -> list[str]:
    """What it prints, by line. Raises ValueError."""
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ValueError(done.stderr.strip() or f"git {' '.join(arguments)}: there is no such commit")
    return done.stdout.splitlines()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.selection", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commit", nargs="?", help="default: where the branch left main")
    options = parser.parse_args(arguments)
    try:
        paths = changed(ROOT, options.commit)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    tree = Tree()
    found = tree.concerned(paths)
    print(f"{len(found)} of {len(tree.tests())} test files depend on {len(paths)} changed files", file=sys.stderr)
    print(*found, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
