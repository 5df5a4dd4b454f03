"""Commands for files."""

from __future__ import annotations

from kemu.emulated.kubelet.programs import arguments
from kemu.emulated.kubelet.programs import files as trees
from kemu.emulated.kubelet.programs.shells import Shell
from kemu.emulated.kubelet.programs.syntax import NotUnderstood


def cat(shell: Shell, words: list[str]) -> int:
    _, names = arguments.flags(words, "u")
    code = 0
    for name in names or ["-"]:
        try:
            shell.say("".join(arguments.inputs(shell, [name])))
        except trees.FilesError as error:
            problem = str(error).partition(": ")[2]
            code = shell.complain(f"cat: can't open '{name}': {problem}" if "No such" in problem else f"cat: {error}")
    return code


def ls(shell: Shell, words: list[str]) -> int:
    flags, names = arguments.flags(words, "a1lAdhRtrF")
    if flags & set("lR"):
        raise NotUnderstood("'ls' with -l or -R")
    tree, code = shell.world.files, 0
    names = names or ["."]
    for number, name in enumerate(names):
        path = arguments.path(shell, name)
        if not tree.exists(path):
            code = shell.complain(f"ls: {name}: No such file or directory")
        elif "d" in flags or not tree.is_folder(path):
            shell.say(f"{name}\n")
        else:
            if len(names) > 1:
                shell.say(("\n" if number else "") + f"{name}:\n")
            found = [one for one in tree.names(path) if flags & set("aA") or not one.startswith(".")]
            shell.say("".join(f"{one}\n" for one in ([".", ".."] if "a" in flags else []) + found))
    return code


def touch(shell: Shell, words: list[str]) -> int:
    _, names = arguments.flags(words, "am")
    for name in names:
        path = arguments.path(shell, name)
        if not shell.world.files.exists(path):
            try:
                shell.world.files.write(path, "")
            except trees.FilesError as error:
                return shell.complain(f"touch: {name}: {error}")
    return 0


def rm(shell: Shell, words: list[str]) -> int:
    flags, names = arguments.flags(words, "rfRv")
    code = 0
    for name in names:
        path = arguments.path(shell, name)
        try:
            if shell.world.files.is_folder(path) and not flags & set("rR"):
                code = shell.complain(f"rm: '{name}' is a directory")
                continue
            shell.world.files.remove(path)
        except trees.FilesError as error:
            if "f" not in flags:
                code = shell.complain(f"rm: can't remove '{name}': {error}")
    return code


def mkdir(shell: Shell, words: list[str]) -> int:
    flags, names = arguments.flags(words, "pv")
    for name in names:
        try:
            path = arguments.path(shell, name)
            if "p" in flags:
                parts = path.strip("/").split("/")
                for count in range(1, len(parts) + 1):
                    shell.world.files.make_folder("/" + "/".join(parts[:count]), parents=True)
            else:
                shell.world.files.make_folder(path, parents=False)
        except trees.FilesError as error:
            return shell.complain(f"mkdir: can't create directory '{name}': {error}")
    return 0


def mv_cp(shell: Shell, words: list[str]) -> int:
    flags, names = arguments.flags(words, "vfrRapn")
    command, tree = words[0].rpartition("/")[2], shell.world.files
    if len(names) < 2:
        return shell.complain(f"{command}: missing file operand")
    *sources, target = names
    code = 0
    for source in sources:
        begin, end = arguments.path(shell, source), arguments.path(shell, target)
        if tree.is_folder(end):
            end = trees.joined(end, begin.rpartition("/")[2])
        if not tree.exists(begin):
            verb = "rename" if command == "mv" else "stat"
            code = shell.complain(f"{command}: can't {verb} '{source}': No such file or directory")
            continue
        if tree.is_folder(begin):
            raise NotUnderstood(f"'{command}' of a folder")
        tree.write(end, tree.read(begin))
        if command == "mv":
            tree.remove(begin)
        if "v" in flags:
            shown = (
                f"{target}/{source.rpartition('/')[2]}".replace("//", "/")
                if end != arguments.path(shell, target)
                else target
            )
            shell.say(f"{'renamed ' if command == 'mv' else ''}'{source}' -> '{shown}'\n")
    return code


def tee(shell: Shell, words: list[str]) -> int:
    flags, names = arguments.flags(words, "a")
    shell.say(shell.stdin)
    for name in names:
        shell.world.files.write(arguments.path(shell, name), shell.stdin, append="a" in flags)
    return 0
