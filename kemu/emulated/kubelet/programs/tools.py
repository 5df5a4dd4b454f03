"""The commands that scripts are made of, as busybox has them: those that need nothing but files, variables and time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from kemu.emulated.kubelet.programs import archives, arguments, arithmetic, conditions, file_tools, syntax, text_tools
from kemu.emulated.kubelet.programs import files as trees
from kemu.emulated.kubelet.programs.shells import FOREVER, INTERRUPTED, TERM, Exit, Shell, Steps
from kemu.emulated.kubelet.programs.syntax import NotUnderstood

Tool = Callable[[Shell, list[str]], int]
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}


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
    ends = [shell.jobs[number] for number in _jobs(shell, words[1:])] if words[1:] else shell.jobs
    end_s = max([shell.at_s, *ends])
    if end_s > shell.at_s:
        shell.waits = True
        yield end_s - shell.at_s
        shell.waits = False
        if shell is shell.world.main and shell.world.told_s < end_s:
            shell.at_s = shell.world.told_s
            return INTERRUPTED
        shell.at_s = end_s
    return 0


def _jobs(shell: Shell, words: Sequence[str]) -> list[int]:
    """Indexes of the jobs with these process ids. Raises NotUnderstood."""
    known = {str(shell.process_of(number)): number for number in range(len(shell.jobs))}
    if not all(word in known for word in words):
        raise NotUnderstood(f"what is meant by process {' '.join(words)} is not known")
    return [known[word] for word in words]


def _shell(shell: Shell, words: Sequence[str]) -> Steps:
    """``sh``, with ``-c SCRIPT`` or a file."""
    rest = list(words[1:])
    child = shell.fork()
    child.variables = {name: value for name, value in child.variables.items() if name in child.exported}
    child.jobs, child.exits_on_error, child.traces = [], False, False
    if shell.world.main is None:
        shell.world.main = child
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
            text, child.parameters = shell.world.files.read(arguments.path(shell, rest[0])), rest
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
    if shell is shell.world.main:
        shell.world.main = None
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
            code = text_tools.head(shell, ["tail", *rest[1:]])
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
    _, rest = arguments.flags(words, "r")
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
    flags, _ = arguments.flags(words, "sif")
    name = shell.variables.get("_POD_IP", "") if "i" in flags else shell.world.hostname
    shell.say(name + "\n")
    return 0


def _date(shell: Shell, words: list[str]) -> int:
    shell.world.tells_time = True
    now_s = shell.world.unix_s + shell.at_s
    rest = [word for word in words[1:] if word not in ("-u", "--utc")]
    pattern = "+%a %b %e %H:%M:%S UTC %Y" if not rest else rest[0]
    if len(rest) > 1 or not pattern.startswith("+"):
        raise NotUnderstood("'date' with options")
    pattern = pattern[1:].replace("%s", str(int(now_s))).replace("%N", f"{int(now_s % 1 * 1e9):09d}")
    shell.say(datetime.fromtimestamp(now_s, UTC).strftime(pattern.replace("%Z", "UTC")) + "\n")
    return 0


def _pwd(shell: Shell, words: list[str]) -> int:
    shell.say(shell.cwd + "\n")
    return 0


def _cd(shell: Shell, words: list[str]) -> int:
    path = arguments.path(shell, words[1] if words[1:] else shell.variables.get("HOME", "/"))
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


def _expr(shell: Shell, words: list[str]) -> int:
    text = " ".join("==" if word == "=" else word for word in words[1:])
    value = arithmetic.value(text, shell.variable)
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


def _read(shell: Shell, words: list[str]) -> int:
    _, names = arguments.flags(words, "r")
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


def _trap(shell: Shell, words: list[str]) -> int:
    rest = words[2:] if words[1:2] == ["--"] else words[1:]
    names = [_signal(word) for word in rest[1:]]
    if len(rest) < 2 or "EXIT" in names:
        raise NotUnderstood("'trap' for EXIT, or without a signal")
    for name in names:
        if rest[0] == "-":
            shell.traps.pop(name, None)
        else:
            shell.traps[name] = rest[0]
    return 0


def _kill(shell: Shell, words: list[str]) -> int:
    """Of jobs in the background, which end at once."""
    rest = words[1:]
    if rest[:1] == ["-s"]:
        rest = rest[1:]
    elif rest and rest[0].startswith("-"):
        rest[0] = rest[0][1:]
    else:
        rest.insert(0, TERM)
    if not rest[1:] or _signal(rest[0]) not in (TERM, "INT", "KILL", "QUIT"):
        raise NotUnderstood(f"'{' '.join(words)}'")
    for number in _jobs(shell, rest[1:]):
        shell.jobs[number] = min(shell.jobs[number], shell.at_s)
    return 0


def _signal(word: str) -> str:
    return _SIGNALS.get(word, word.upper().removeprefix("SIG"))


_SIGNALS = {"0": "EXIT", "2": "INT", "3": "QUIT", "9": "KILL", "15": TERM}

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
# good first: another command that images often call in probes or loops: cut, tr, sed -n p, uniq, id
TOOLS: dict[str, Tool] = {
    "true": _true, ":": _true, "sync": _true, "chmod": _true, "chown": _true, "ulimit": _true, "umask": _true,
    "stty": _true, "false": _false, "exit": _exit, "echo": text_tools.echo, "printf": text_tools.printf,
    "cat": file_tools.cat, "ls": file_tools.ls, "touch": file_tools.touch, "rm": file_tools.rm,
    "mkdir": file_tools.mkdir, "mv": file_tools.mv_cp, "cp": file_tools.mv_cp, "printenv": _printenv,
    "hostname": _hostname, "date": _date, "pwd": _pwd, "cd": _cd, "export": _export, "unset": _unset, "set": _set,
    "shift": _shift, "seq": text_tools.seq, "expr": _expr, "whoami": _whoami, "uname": _uname,
    "head": text_tools.head, "wc": text_tools.wc, "grep": text_tools.grep, "sort": text_tools.sort,
    "tee": file_tools.tee, "base64": text_tools.base64, "read": _read, "basename": text_tools.basename,
    "dirname": text_tools.dirname, "which": _which, "test": conditions.test, "[": conditions.test,
    "[[": conditions.test, "trap": _trap, "kill": _kill, "tar": archives.tar,
}  # fmt: skip
