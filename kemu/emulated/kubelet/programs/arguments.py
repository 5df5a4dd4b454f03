"""What commands do with their arguments."""

from __future__ import annotations

from collections.abc import Sequence

from kemu.emulated.kubelet.programs import files as trees
from kemu.emulated.kubelet.programs.shells import Shell
from kemu.emulated.kubelet.programs.syntax import NotUnderstood


def path(shell: Shell, name: str) -> str:
    return trees.joined(shell.cwd, name)


def flags(words: Sequence[str], known: str) -> tuple[set[str], list[str]]:
    """The letters of its options, and the rest. Raises NotUnderstood for an option that kemu does not know."""
    found: set[str] = set()
    for number, word in enumerate(words[1:], 1):
        if word == "--":
            return found, list(words[number + 1 :])
        if not word.startswith("-") or word == "-":
            return found, list(words[number:])
        if word.startswith("--") or not set(word[1:]) <= set(known):
            raise NotUnderstood(f"the option {word} of {words[0]} is not understood")
        found |= set(word[1:])
    return found, []


def inputs(shell: Shell, names: Sequence[str]) -> list[str]:
    """The texts of these files, or of standard input. Raises FilesError."""
    found = []
    for name in names or ["-"]:
        if name in ("-", "/dev/stdin"):
            found.append(shell.stdin)
            continue
        try:
            found.append(shell.world.files.read(path(shell, name)))
        except trees.FilesError as error:
            raise trees.FilesError(f"{name}: {error}" if names else str(error)) from None
    return found
