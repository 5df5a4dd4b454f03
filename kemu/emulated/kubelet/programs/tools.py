"""The commands that scripts are made of, as busybox has them: those that need nothing but files, variables and time."""

from __future__ import annotations

import base64
import fnmatch
import re
import time
from collections.abc import Callable, Sequence

from kemu.emulated.kubelet.programs import files as trees
from kemu.emulated.kubelet.programs import syntax
from kemu.emulated.kubelet.programs.shells import FOREVER, Exit, Shell, Steps, arithmetic
from kemu.emulated.kubelet.programs.syntax import NotUnderstood

Tool = Callable[[Shell, list[str]], int]
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "e": "\x1b"}


def _path(shell: Shell, name: str) -> str:
    return trees.joined(shell.cwd, name)


def _flags(words: Sequence[str], known: str) -> tuple[set[str], list[str]]:
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


# What takes time ------------------------------------------------------------------------------------------------------


def _sleep(shell: Shell, words: Sequence[str]) -> Steps:
    seconds = 0.0
    for word in words[1:]:
        if word in ("infinity", "inf"):
            yield FOREVER
        found = re.fullmatch(r"(\d{1,12}(?:\.\d*)?|\.\d+)([smhd]?)", word)
        if found is None:
            return shell.complain(f"sleep: invalid number '{word}'")
        seconds += float(found[1]) * _UNITS[found[2]]
    if len(words) < 2:
        return shell.complain("sleep: missing operand")
    yield seconds
    shell.at_s += seconds
    return 0


def _wait(shell: Shell, words: Sequence[str]) -> Steps:
    if words[1:] and not all(word.isdigit() for word in words[1:]):
        raise NotUnderstood("a 'wait' for that")
    left_s = max([0.0, *(end_s - shell.at_s for end_s in shell.jobs)])
    if left_s:
        yield left_s
        shell.at_s += left_s
    shell.jobs.clear()
    return 0


def _shell(shell: Shell, words: Sequence[str]) -> Steps:
    """``sh``, with ``-c SCRIPT`` or a file."""
    rest = list(words[1:])
    child = shell.fork()
    child.variables = {name: value for name, value in child.variables.items() if name in child.exported}
    child.jobs, child.exits_on_error, child.traces = [], False, False
    is_text = False
    while rest and rest[0].startswith(("-", "+")) and rest[0] != "--":
        letters = rest.pop(0)
        for letter in letters[1:]:
            if letter == "c":
                is_text = True
            elif letter == "e":
                child.exits_on_error = letters[0] == "-"
            elif letter == "x":
                child.traces = letters[0] == "-"
            elif letter == "o" and rest:
                child.exits_on_error = rest.pop(0) == "errexit" or child.exits_on_error
            elif letter not in "ilu":
                raise NotUnderstood(f"the option -{letter} of {words[0]} is not understood")
    if rest and rest[0] == "--":
        rest.pop(0)
    if is_text:
        if not rest:
            return shell.complain(f"{words[0]}: option requires an argument -- c", 2)
        text, child.parameters = rest[0], rest[1:] or [words[0]]
    elif rest:
        try:
            text, child.parameters = shell.world.files.read(_path(shell, rest[0])), rest
        except trees.FilesError:
            raise NotUnderstood(f"what is in {rest[0]} is not known") from None
        except trees.Unknown as error:
            raise NotUnderstood(str(error)) from None
    else:
        text, child.stdin = shell.stdin, ""
    try:
        return (yield from child.script(syntax.parse(text)))
    except Exit as end:
        return end.code
    finally:
        shell.at_s = max(shell.at_s, child.at_s)


def _exec(shell: Shell, words: Sequence[str]) -> Steps:
    if len(words) == 1:
        return 0
    raise Exit((yield from shell.run(words[1:])))


def _through(shell: Shell, words: Sequence[str]) -> Steps:
    """``command``, ``nohup``, ``time``, ``tini --`` and others that run what stands behind them."""
    rest = list(words[1:])
    while rest and rest[0] in ("--", "-g", "-s", "-v", "-p", "-n") and words[0] != "command":
        rest.pop(0)
    if not rest or rest[0].startswith("-"):
        raise NotUnderstood(f"{words[0]} {' '.join(rest)}")
    return (yield from shell.run(rest))


def _timeout(shell: Shell, words: Sequence[str]) -> Steps:
    rest = list(words[1:])
    found = re.fullmatch(r"(\d{1,9}(?:\.\d+)?)([smhd]?)", rest[0]) if len(rest) > 1 else None
    if found is None:
        raise NotUnderstood("'timeout' with options")
    left_s = float(found[1]) * _UNITS[found[2]]
    steps = shell.run(rest[1:])
    try:
        while True:
            passed = next(steps)
            if passed > left_s:
                yield left_s
                shell.at_s += left_s
                return 124
            left_s -= passed
            yield passed
    except StopIteration as end:
        return int(end.value)


def _env(shell: Shell, words: Sequence[str]) -> Steps:
    rest = list(words[1:])
    child = shell.fork()
    while rest and "=" in rest[0]:
        name, _, value = rest.pop(0).partition("=")
        child.variables[name] = value
        child.exported.add(name)
    if rest:
        if rest[0].startswith("-"):
            raise NotUnderstood(f"the option {rest[0]} of env is not understood")
        code = yield from child.run(rest)
        shell.at_s = child.at_s
        return code
    _check_known(shell)
    for name, value in child.environment().items():
        child.say(f"{name}={value}\n")
    return 0


def _tail(shell: Shell, words: Sequence[str]) -> Steps:
    follows = any(word in ("-f", "-F") for word in words[1:])
    rest = [word for word in words if word not in ("-f", "-F")]
    names = [word for word in rest[1:] if not word.startswith("-") and not word.isdigit()]
    code = 0
    if names != ["/dev/null"] and (names or not follows):
        try:
            code = _head(shell, ["tail", *rest[1:]])
        except trees.FilesError as error:
            code = shell.complain(f"tail: {names[0]}: {error}")
    if follows and not code:
        yield FOREVER
    return code


def _eval(shell: Shell, words: Sequence[str]) -> Steps:
    return (yield from shell.script(syntax.parse(" ".join(words[1:]))))


def _busybox(shell: Shell, words: Sequence[str]) -> Steps:
    if len(words) < 2:
        return 0
    return (yield from shell.run(words[1:]))


def _xargs(shell: Shell, words: Sequence[str]) -> Steps:
    _, rest = _flags(words, "r")
    given = shell.stdin.split()
    return (yield from shell.run([*(rest or ["echo"]), *given])) if given else 0


# What takes none ------------------------------------------------------------------------------------------------------


def _true(shell: Shell, words: list[str]) -> int:
    return 0


def _false(shell: Shell, words: list[str]) -> int:
    return 1


def _exit(shell: Shell, words: list[str]) -> int:
    if words[1:] and not re.fullmatch(r"-?\d{1,9}", words[1]):
        shell.complain(f"sh: exit: Illegal number: {words[1]}")
        raise Exit(2)
    raise Exit(int(words[1]) if words[1:] else shell.status)


def _echo(shell: Shell, words: list[str]) -> int:
    rest, end, escapes = words[1:], "\n", False
    while rest and re.fullmatch(r"-[neE]+", rest[0]):
        flags = rest.pop(0)
        end = "" if "n" in flags else end
        escapes = escapes or "e" in flags
    text = " ".join(rest)
    shell.say((_unescaped(text) if escapes else text) + end)
    return 0


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), text)


def _printf(shell: Shell, words: list[str]) -> int:
    if len(words) < 2:
        return shell.complain("printf: usage: printf FORMAT [ARGUMENT]...")
    pattern, given = _unescaped(words[1]), words[2:]
    while True:
        before = len(given)

        def value(found: re.Match[str]) -> str:
            if found[2] == "%":
                return "%"
            argument = given.pop(0) if given else ""
            if found[2] == "b":
                return _unescaped(argument)
            if found[2] in "dixXou":
                if not re.fullmatch(r"\s*-?\d{0,18}\s*", argument):
                    raise NotUnderstood(f"printf of {argument!r} as a number")
                kind = "d" if found[2] in "iu" else found[2]
                return f"%{_width(found[1])}{kind}" % int(argument or 0)
            return f"%{_width(found[1])}s" % argument

        shell.say(re.sub(r"%([-0]?\d*(?:\.\d+)?)([%sdixXoub])", value, pattern))
        if not given or len(given) == before:
            return 0


def _width(text: str) -> str:
    if any(int(number) > 1000 for number in re.findall(r"\d+", text)):
        raise NotUnderstood("printf with so wide a field")
    return text


def _inputs(shell: Shell, names: Sequence[str]) -> list[str]:
    """The texts of these files, or of standard input. Raises FilesError."""
    found = []
    for name in names or ["-"]:
        if name in ("-", "/dev/stdin"):
            found.append(shell.stdin)
            continue
        try:
            found.append(shell.world.files.read(_path(shell, name)))
        except trees.FilesError as error:
            raise trees.FilesError(f"{name}: {error}" if names else str(error)) from None
    return found


def _cat(shell: Shell, words: list[str]) -> int:
    _, names = _flags(words, "u")
    code = 0
    for name in names or ["-"]:
        try:
            shell.say("".join(_inputs(shell, [name])))
        except trees.FilesError as error:
            problem = str(error).partition(": ")[2]
            code = shell.complain(f"cat: can't open '{name}': {problem}" if "No such" in problem else f"cat: {error}")
    return code


def _ls(shell: Shell, words: list[str]) -> int:
    flags, names = _flags(words, "a1lAdhRtrF")
    if flags & set("lR"):
        raise NotUnderstood("'ls' with -l or -R")
    tree, code = shell.world.files, 0
    names = names or ["."]
    for number, name in enumerate(names):
        path = _path(shell, name)
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


def _touch(shell: Shell, words: list[str]) -> int:
    _, names = _flags(words, "am")
    for name in names:
        path = _path(shell, name)
        if not shell.world.files.exists(path):
            try:
                shell.world.files.write(path, "")
            except trees.FilesError as error:
                return shell.complain(f"touch: {name}: {error}")
    return 0


def _rm(shell: Shell, words: list[str]) -> int:
    flags, names = _flags(words, "rfRv")
    code = 0
    for name in names:
        path = _path(shell, name)
        try:
            if shell.world.files.is_folder(path) and not flags & set("rR"):
                code = shell.complain(f"rm: '{name}' is a directory")
                continue
            shell.world.files.remove(path)
        except trees.FilesError as error:
            if "f" not in flags:
                code = shell.complain(f"rm: can't remove '{name}': {error}")
    return code


def _mkdir(shell: Shell, words: list[str]) -> int:
    flags, names = _flags(words, "pv")
    for name in names:
        try:
            path = _path(shell, name)
            if "p" in flags:
                parts = path.strip("/").split("/")
                for count in range(1, len(parts) + 1):
                    shell.world.files.make_folder("/" + "/".join(parts[:count]), parents=True)
            else:
                shell.world.files.make_folder(path, parents=False)
        except trees.FilesError as error:
            return shell.complain(f"mkdir: can't create directory '{name}': {error}")
    return 0


def _mv_cp(shell: Shell, words: list[str]) -> int:
    flags, names = _flags(words, "vfrRapn")
    command, tree = words[0].rpartition("/")[2], shell.world.files
    if len(names) < 2:
        return shell.complain(f"{command}: missing file operand")
    *sources, target = names
    code = 0
    for source in sources:
        begin, end = _path(shell, source), _path(shell, target)
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
            shown = f"{target}/{source.rpartition('/')[2]}".replace("//", "/") if end != _path(shell, target) else target
            shell.say(f"{'renamed ' if command == 'mv' else ''}'{source}' -> '{shown}'\n")
    return code


def _printenv(shell: Shell, words: list[str]) -> int:
    found = shell.environment()
    if len(words) == 1:
        _check_known(shell)
        shell.say("".join(f"{name}={value}\n" for name, value in found.items()))
        return 0
    code = 0
    for name in words[1:]:
        if shell.variable(name) is not None and name in found:
            shell.say(found[name] + "\n")
        else:
            code = 1
    return code


def _check_known(shell: Shell) -> None:
    unknown = shell.world.unknown - set(shell.variables)
    if unknown:
        raise NotUnderstood(f"the value of ${min(unknown)} is not known here")


def _hostname(shell: Shell, words: list[str]) -> int:
    flags, _ = _flags(words, "sif")
    name = shell.variables.get("_POD_IP", "") if "i" in flags else shell.world.hostname
    shell.say(name + "\n")
    return 0


def _date(shell: Shell, words: list[str]) -> int:
    now_s = shell.world.unix_s + shell.at_s
    rest = [word for word in words[1:] if word not in ("-u", "--utc")]
    pattern = "+%a %b %e %H:%M:%S UTC %Y" if not rest else rest[0]
    if len(rest) > 1 or not pattern.startswith("+"):
        raise NotUnderstood("'date' with options")
    pattern = pattern[1:].replace("%s", str(int(now_s))).replace("%N", f"{int(now_s % 1 * 1e9):09d}")
    shell.say(time.strftime(pattern.replace("%Z", "UTC"), time.gmtime(now_s)) + "\n")
    return 0


def _pwd(shell: Shell, words: list[str]) -> int:
    shell.say(shell.cwd + "\n")
    return 0


def _cd(shell: Shell, words: list[str]) -> int:
    path = _path(shell, words[1] if words[1:] else shell.variables.get("HOME", "/"))
    if not shell.world.files.is_folder(path):
        return shell.complain(f"sh: cd: can't cd to {words[1] if words[1:] else path}: No such file or directory", 2)
    shell.cwd = path
    return 0


def _export(shell: Shell, words: list[str]) -> int:
    for word in words[1:]:
        name, sign, value = word.partition("=")
        if name.startswith("-"):
            raise NotUnderstood("'export' with options")
        if sign:
            shell.variables[name] = value
        shell.exported.add(name)
    return 0


def _unset(shell: Shell, words: list[str]) -> int:
    for word in words[1:]:
        shell.variables.pop(word, None)
    return 0


def _set(shell: Shell, words: list[str]) -> int:
    rest = words[1:]
    while rest and re.fullmatch(r"[-+][a-z]+", rest[0]):
        flags = rest.pop(0)
        turns_on = flags[0] == "-"
        for letter in flags[1:]:
            if letter == "e":
                shell.exits_on_error = turns_on
            elif letter == "x":
                shell.traces = turns_on
            elif letter == "o" and rest:
                name = rest.pop(0)
                if name == "errexit":
                    shell.exits_on_error = turns_on
    if rest:
        shell.parameters = [shell.parameters[0], *(rest[1:] if rest[0] == "--" else rest)]
    return 0


def _shift(shell: Shell, words: list[str]) -> int:
    count = int(words[1]) if words[1:] and words[1].isdigit() else 1
    shell.parameters = [shell.parameters[0], *shell.parameters[1 + count :]]
    return 0


def _seq(shell: Shell, words: list[str]) -> int:
    if not all(re.fullmatch(r"-?\d{1,6}", word) for word in words[1:]) or not 2 <= len(words) <= 4:
        raise NotUnderstood("'seq' of that")
    numbers = [int(word) for word in words[1:]]
    first, step, last = (1, 1, *numbers) if len(numbers) == 1 else (numbers[0], 1, numbers[1]) if len(numbers) == 2 else numbers
    if not step:
        raise NotUnderstood("'seq' with steps of 0")
    shell.say("".join(f"{number}\n" for number in range(first, last + (1 if step > 0 else -1), step)))
    return 0


def _expr(shell: Shell, words: list[str]) -> int:
    text = " ".join("==" if word == "=" else word for word in words[1:])
    value = arithmetic(text, shell)
    shell.say(f"{value}\n")
    return int(not value)


def _whoami(shell: Shell, words: list[str]) -> int:
    shell.say(shell.world.user + "\n")
    return 0


def _uname(shell: Shell, words: list[str]) -> int:
    if words[1:] not in ([], ["-s"]):
        raise NotUnderstood("'uname' with options")
    shell.say("Linux\n")
    return 0


def _head(shell: Shell, words: list[str]) -> int:
    """And ``tail``."""
    count, names, rest = 10, [], words[1:]
    while rest:
        word = rest.pop(0)
        found = re.fullmatch(r"-(?:n ?)?\+?(\d{1,6})", word)
        if word == "-n" and rest and rest[0].isdigit():
            count = int(rest.pop(0)[:6])
        elif found is not None and "+" not in word:
            count = int(found[1])
        elif word.startswith("-") and word != "-":
            raise NotUnderstood(f"the option {word} of {words[0]} is not understood")
        else:
            names.append(word)
    lines = "".join(_inputs(shell, names)).splitlines(keepends=True)
    shell.say("".join(lines[:count] if words[0] == "head" else lines[-count:] if count else []))
    return 0


def _wc(shell: Shell, words: list[str]) -> int:
    flags, names = _flags(words, "lwc")
    text = "".join(_inputs(shell, names))
    counts = {"l": text.count("\n"), "w": len(text.split()), "c": len(text.encode())}
    shown = " ".join(str(counts[one]) for one in "lwc" if one in flags or not flags)
    shell.say(" ".join([shown, *names[:1]]) + "\n")
    return 0


def _grep(shell: Shell, words: list[str]) -> int:
    flags, rest = _flags(words, "qviEFcown")
    if not rest:
        return shell.complain("grep: usage: grep [OPTIONS] PATTERN [FILE]...", 2)
    text = rest[0]
    # Patterns that search long for nothing are not for here.
    if "F" not in flags and re.search(r"[+*{].*[+*{]", text) or flags & set("own"):
        raise NotUnderstood(f"grep of {text!r}")
    try:
        pattern = re.compile(re.escape(text) if "F" in flags else text, re.IGNORECASE if "i" in flags else 0)
    except re.error:
        raise NotUnderstood(f"grep of {text!r}") from None
    lines = [one for one in "".join(_inputs(shell, rest[1:])).splitlines() if bool(pattern.search(one)) != ("v" in flags)]
    if "c" in flags:
        shell.say(f"{len(lines)}\n")
    elif "q" not in flags:
        shell.say("".join(f"{one}\n" for one in lines))
    return int(not lines)


def _sort(shell: Shell, words: list[str]) -> int:
    flags, names = _flags(words, "ur")
    lines = "".join(_inputs(shell, names)).splitlines()
    lines = sorted(set(lines) if "u" in flags else lines, reverse="r" in flags)
    shell.say("".join(f"{one}\n" for one in lines))
    return 0


def _tee(shell: Shell, words: list[str]) -> int:
    flags, names = _flags(words, "a")
    shell.say(shell.stdin)
    for name in names:
        shell.world.files.write(_path(shell, name), shell.stdin, append="a" in flags)
    return 0


def _base64(shell: Shell, words: list[str]) -> int:
    flags, names = _flags(words, "dw")
    text = "".join(_inputs(shell, [one for one in names if one != "0"]))
    if "d" not in flags:
        shell.say(base64.b64encode(text.encode()).decode() + "\n")
        return 0
    try:
        shell.say(base64.b64decode(text, validate=False).decode(errors="replace"))
    except ValueError:
        return shell.complain("base64: invalid input")
    return 0


def _basename(shell: Shell, words: list[str]) -> int:
    shell.say(words[1].rstrip("/").rpartition("/")[2].removesuffix(words[2] if words[2:] else "") + "\n" if words[1:] else "\n")
    return 0


def _dirname(shell: Shell, words: list[str]) -> int:
    shell.say((words[1].rpartition("/")[0] or "." if words[1:] else ".") + "\n")
    return 0


def _read(shell: Shell, words: list[str]) -> int:
    _, names = _flags(words, "r")
    line, sign, shell.stdin = shell.stdin.partition("\n")
    values = line.split(None, max(0, len(names) - 1))
    for number, name in enumerate(names or ["REPLY"]):
        shell.variables[name] = values[number] if number < len(values) else ""
    return 0 if sign or line else 1


def _which(shell: Shell, words: list[str]) -> int:
    code = 0
    for word in words[1:]:
        if word.startswith("-"):
            continue
        name = word.rpartition("/")[2]
        if name in TOOLS or name in TIMED:
            shell.say(f"/bin/{name}\n")
        else:
            code = 1
    return code


# test -----------------------------------------------------------------------------------------------------------------


def _test(shell: Shell, words: list[str]) -> int:
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
    tree, path = shell.world.files, _path(shell, name)
    if sign in ("-e", "-r", "-w"):
        return tree.exists(path)
    if sign == "-d":
        return tree.exists(path) and tree.is_folder(path)
    if sign in ("-f", "-s"):
        return tree.exists(path) and not tree.is_folder(path) and (sign == "-f" or bool(tree.read(path)))
    if sign in ("-t", "-L", "-h", "-p", "-S"):
        return False
    raise NotUnderstood(f"test {sign}")


def _trap(shell: Shell, words: list[str]) -> int:
    """What a program does when it is told to stop is not simulated: it stops."""
    if words[-1:] in (["EXIT"], ["0"]) or len(words) == 1:
        raise NotUnderstood("'trap' for EXIT")
    return 0


TIMED: dict[str, Callable[[Shell, Sequence[str]], Steps]] = {
    "sleep": _sleep,
    "wait": _wait,
    **dict.fromkeys(("sh", "bash", "ash", "dash"), _shell),
    "exec": _exec,
    **dict.fromkeys(("command", "nohup", "time", "tini", "dumb-init", "nice"), _through),
    "timeout": _timeout,
    "env": _env,
    "tail": _tail,
    "eval": _eval,
    "busybox": _busybox,
    "xargs": _xargs,
}
TOOLS: dict[str, Tool] = {
    "true": _true, ":": _true, "sync": _true, "chmod": _true, "chown": _true, "ulimit": _true, "umask": _true, "stty": _true,
    "false": _false, "exit": _exit, "echo": _echo, "printf": _printf, "cat": _cat, "ls": _ls, "touch": _touch, "rm": _rm,
    "mkdir": _mkdir, "mv": _mv_cp, "cp": _mv_cp, "printenv": _printenv, "hostname": _hostname, "date": _date, "pwd": _pwd,
    "cd": _cd, "export": _export, "unset": _unset, "set": _set, "shift": _shift, "seq": _seq, "expr": _expr, "whoami": _whoami,
    "uname": _uname, "head": _head, "wc": _wc, "grep": _grep, "sort": _sort, "tee": _tee, "base64": _base64, "read": _read,
    "basename": _basename, "dirname": _dirname, "which": _which, "test": _test, "[": _test, "[[": _test, "trap": _trap,
}  # fmt: skip

