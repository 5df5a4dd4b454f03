"""``test``, ``[`` and ``[[``."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable

from kemu.emulated.kubelet.programs import files as trees
from kemu.emulated.kubelet.programs.shells import Exit, Shell
from kemu.emulated.kubelet.programs.syntax import NotUnderstood


def test(shell: Shell, words: list[str]) -> int:
    """``test``, ``[`` and ``[[``."""
    rest = words[1:]
    if words[0] in ("[", "[["):
        if not rest or rest[-1] != {"[": "]", "[[": "]]"}[words[0]]:
            raise NotUnderstood(f"a {words[0]!r} without its end")
        rest = rest[:-1]
    holds, at = _or(shell, rest, 0, patterns=words[0] == "[[")
    if at < len(rest):
        raise NotUnderstood(f"test {' '.join(rest)}")
    return int(not holds)


def _or(shell: Shell, words: list[str], at: int, *, patterns: bool) -> tuple[bool, int]:
    holds, at = _and(shell, words, at, patterns=patterns)
    while at < len(words) and words[at] in ("-o", "||"):
        other, at = _and(shell, words, at + 1, patterns=patterns)
        holds = holds or other
    return holds, at


def _and(shell: Shell, words: list[str], at: int, *, patterns: bool) -> tuple[bool, int]:
    holds, at = _not(shell, words, at, patterns=patterns)
    while at < len(words) and words[at] in ("-a", "&&"):
        other, at = _not(shell, words, at + 1, patterns=patterns)
        holds = holds and other
    return holds, at


_COMPARED: dict[str, Callable[[int, int], bool]] = {
    "-eq": lambda left, right: left == right,
    "-ne": lambda left, right: left != right,
    "-lt": lambda left, right: left < right,
    "-le": lambda left, right: left <= right,
    "-gt": lambda left, right: left > right,
    "-ge": lambda left, right: left >= right,
}


def _not(shell: Shell, words: list[str], at: int, *, patterns: bool) -> tuple[bool, int]:
    left = len(words) - at
    if left <= 0:
        return False, at
    if left > 1 and words[at] == "!":
        holds, at = _not(shell, words, at + 1, patterns=patterns)
        return not holds, at
    if left > 2 and words[at + 1] in ("=", "==", "!="):
        one, other = words[at], words[at + 2]
        same = fnmatch.fnmatchcase(one, other) if patterns else one == other
        return same == (words[at + 1] != "!="), at + 3
    if left > 2 and words[at + 1] in _COMPARED:
        numbers = [words[at].strip(), words[at + 2].strip()]
        if not all(re.fullmatch(r"-?\d{1,18}", one) for one in numbers):
            shell.complain("sh: out of range")
            raise Exit(2)
        return _COMPARED[words[at + 1]](int(numbers[0]), int(numbers[1])), at + 3
    if left > 1 and words[at] in ("-z", "-n"):
        return (not words[at + 1]) == (words[at] == "-z"), at + 2
    if left > 1 and re.fullmatch(r"-[a-zA-Z]", words[at]):
        return _is(shell, words[at], words[at + 1]), at + 2
    return bool(words[at]), at + 1


def _is(shell: Shell, sign: str, name: str) -> bool:
    tree, path = shell.world.files, trees.joined(shell.cwd, name)
    if sign in ("-e", "-r", "-w"):
        return tree.exists(path)
    if sign == "-d":
        return tree.exists(path) and tree.is_folder(path)
    if sign in ("-f", "-s"):
        return tree.exists(path) and not tree.is_folder(path) and (sign == "-f" or bool(tree.read(path)))
    if sign in ("-t", "-L", "-h", "-p", "-S"):
        return False
    raise NotUnderstood(f"test {sign}")
