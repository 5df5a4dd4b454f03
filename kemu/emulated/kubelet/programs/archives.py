"""``tar``, as far as ``kubectl cp`` and scripts use it: archives to standard output or a file, and from there.

Times, owners and modes are not kept: simulated files have none.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator

from kemu.emulated.kubelet.programs import arguments
from kemu.emulated.kubelet.programs import files as trees
from kemu.emulated.kubelet.programs.shells import Shell
from kemu.emulated.kubelet.programs.syntax import NotUnderstood

_IGNORED = frozenset("vmpho")
_LONG_IGNORED = frozenset((
    "--no-same-owner", "--no-same-permissions", "--same-owner", "--same-permissions", "--preserve-permissions",
    "--verbose",
))  # fmt: skip
_FILE_MODE, _FOLDER_MODE = 0o644, 0o755


def tar(shell: Shell, words: list[str]) -> int:
    """Raises NotUnderstood for what else tar can do, as compression."""
    action, archive, folder, names = _options(words)
    if folder is not None:
        folder = trees.joined(shell.cwd, folder)
        if not shell.world.files.is_folder(folder):
            return shell.complain(f"tar: can't change directory to '{folder}': No such file or directory")
    where = shell.cwd if folder is None else folder
    if action == "c":
        return _create(shell, archive, where, names)
    try:
        text = shell.stdin if archive == "-" else shell.world.files.read(arguments.path(shell, archive))
    except trees.FilesError as error:
        return shell.complain(f"tar: can't open '{archive}': {error}")
    data = io.BytesIO(text.encode(errors="surrogateescape"))
    try:
        with tarfile.open(fileobj=data, mode="r:") as opened:
            return _list(shell, opened) if action == "t" else _extract(shell, opened, where, names)
    except tarfile.TarError:
        return shell.complain("tar: invalid tar magic")


def _options(words: list[str]) -> tuple[str, str, str | None, list[str]]:
    """What to do (c, x or t), the archive, the folder to go to, the rest."""
    action, archive, folder = "", "-", None
    names: list[str] = []
    rest = words[1:]
    is_first = True
    while rest:
        word = rest.pop(0)
        if word in _LONG_IGNORED:
            continue
        if word.startswith("--"):
            raise NotUnderstood(f"the option {word} of tar is not understood")
        if not (word.startswith("-") or is_first) or word == "-":
            names.append(word)
            is_first = False
            continue
        is_first = False
        for letter in word.removeprefix("-"):
            if letter in "cxt":
                action = letter
            elif letter in "fC" and rest:
                if letter == "f":
                    archive = rest.pop(0)
                else:
                    folder = rest.pop(0)
            elif letter not in _IGNORED:
                raise NotUnderstood(f"the option -{letter} of tar is not understood")
    if not action:
        raise NotUnderstood("'tar' without c, x or t")
    return action, archive, folder, names


def _create(shell: Shell, archive: str, where: str, names: list[str]) -> int:
    tree, code = shell.world.files, 0
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:", format=tarfile.USTAR_FORMAT) as made:
        for name in names:
            path = trees.joined(where, name)
            if not tree.exists(path):
                code = shell.complain(f"tar: {name}: No such file or directory")
                continue
            for inside, content in _walk(tree, path):
                shown = (name.rstrip("/") + inside).lstrip("/") or "./"
                member = tarfile.TarInfo(shown)
                member.mtime = int(shell.world.unix_s + shell.at_s)
                if content is None:
                    member.type, member.mode = tarfile.DIRTYPE, _FOLDER_MODE
                    made.addfile(member)
                else:
                    member.size, member.mode = len(content), _FILE_MODE
                    made.addfile(member, io.BytesIO(content))
    text = data.getvalue().decode(errors="surrogateescape")
    if archive == "-":
        shell.say(text)
    else:
        tree.write(arguments.path(shell, archive), text)
    return code


def _walk(tree: trees.Files, path: str) -> Iterator[tuple[str, bytes | None]]:
    """What is at a path and below: where below, and the content; None: a folder."""
    if not tree.is_folder(path):
        yield "", tree.read(path).encode(errors="surrogateescape")
        return
    yield "", None
    for name in tree.names(path):
        for inside, content in _walk(tree, trees.joined(path, name)):
            yield f"/{name}{inside}", content


def _list(shell: Shell, opened: tarfile.TarFile) -> int:
    for member in opened:
        shell.say(member.name + ("/" if member.isdir() else "") + "\n")
    return 0


def _extract(shell: Shell, opened: tarfile.TarFile, where: str, names: list[str]) -> int:
    tree, code = shell.world.files, 0
    for member in opened:
        if names and not any(member.name == name or member.name.startswith(name.rstrip("/") + "/") for name in names):
            continue
        path = trees.joined(where, member.name.lstrip("/"))
        try:
            if member.isdir():
                tree.make_folder(path, parents=True)
            elif member.isfile():
                _make_parents(tree, path)
                content = opened.extractfile(member)
                assert content is not None
                tree.write(path, content.read().decode(errors="surrogateescape"))
            else:
                code = shell.complain(f"tar: {member.name}: links and devices are not simulated")
        except trees.FilesError as error:
            code = shell.complain(f"tar: can't open '{member.name}': {error}")
    return code


def _make_parents(tree: trees.Files, path: str) -> None:
    parts = path.strip("/").split("/")[:-1]
    for count in range(1, len(parts) + 1):
        tree.make_folder("/" + "/".join(parts[:count]), parents=True)
