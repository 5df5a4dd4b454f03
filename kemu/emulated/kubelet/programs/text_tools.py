"""Commands for texts."""

from __future__ import annotations

import base64 as codec
import re

from kemu.emulated.kubelet.programs import arguments
from kemu.emulated.kubelet.programs.shells import Shell
from kemu.emulated.kubelet.programs.syntax import NotUnderstood

_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "\\": "\\",
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "v": "\v",
    "0": "\0",
    "e": "\x1b",
}


def echo(shell: Shell, words: list[str]) -> int:
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


def printf(shell: Shell, words: list[str]) -> int:
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


def head(shell: Shell, words: list[str]) -> int:
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
    lines = "".join(arguments.inputs(shell, names)).splitlines(keepends=True)
    shell.say("".join(lines[:count] if words[0] == "head" else lines[-count:] if count else []))
    return 0


def wc(shell: Shell, words: list[str]) -> int:
    flags, names = arguments.flags(words, "lwc")
    text = "".join(arguments.inputs(shell, names))
    counts = {"l": text.count("\n"), "w": len(text.split()), "c": len(text.encode())}
    shown = " ".join(str(counts[one]) for one in "lwc" if one in flags or not flags)
    shell.say(" ".join([shown, *names[:1]]) + "\n")
    return 0


def grep(shell: Shell, words: list[str]) -> int:
    flags, rest = arguments.flags(words, "qviEFcown")
    if not rest:
        return shell.complain("grep: usage: grep [OPTIONS] PATTERN [FILE]...", 2)
    text = rest[0]
    # Patterns that search long for nothing are not for here.
    if ("F" not in flags and re.search(r"[+*{].*[+*{]|\)[+*?{]", text)) or flags & set("own"):
        raise NotUnderstood(f"grep of {text!r}")
    try:
        pattern = re.compile(re.escape(text) if "F" in flags else text, re.IGNORECASE if "i" in flags else 0)
    except re.error:
        raise NotUnderstood(f"grep of {text!r}") from None
    lines = [
        one
        for one in "".join(arguments.inputs(shell, rest[1:])).splitlines()
        if bool(pattern.search(one)) != ("v" in flags)
    ]
    if "c" in flags:
        shell.say(f"{len(lines)}\n")
    elif "q" not in flags:
        shell.say("".join(f"{one}\n" for one in lines))
    return int(not lines)


def sort(shell: Shell, words: list[str]) -> int:
    flags, names = arguments.flags(words, "ur")
    lines = "".join(arguments.inputs(shell, names)).splitlines()
    lines = sorted(set(lines) if "u" in flags else lines, reverse="r" in flags)
    shell.say("".join(f"{one}\n" for one in lines))
    return 0


def base64(shell: Shell, words: list[str]) -> int:
    flags, names = arguments.flags(words, "dw")
    text = "".join(arguments.inputs(shell, [one for one in names if one != "0"]))
    if "d" not in flags:
        shell.say(codec.b64encode(text.encode()).decode() + "\n")
        return 0
    try:
        shell.say(codec.b64decode(text, validate=False).decode(errors="replace"))
    except ValueError:
        return shell.complain("base64: invalid input")
    return 0


def seq(shell: Shell, words: list[str]) -> int:
    if not all(re.fullmatch(r"-?\d{1,6}", word) for word in words[1:]) or not 2 <= len(words) <= 4:
        raise NotUnderstood("'seq' of that")
    numbers = [int(word) for word in words[1:]]
    first, step, last = (
        (1, 1, *numbers) if len(numbers) == 1 else (numbers[0], 1, numbers[1]) if len(numbers) == 2 else numbers
    )
    if not step:
        raise NotUnderstood("'seq' with steps of 0")
    shell.say("".join(f"{number}\n" for number in range(first, last + (1 if step > 0 else -1), step)))
    return 0


def basename(shell: Shell, words: list[str]) -> int:
    shell.say(
        words[1].rstrip("/").rpartition("/")[2].removesuffix(words[2] if words[2:] else "") + "\n"
        if words[1:]
        else "\n"
    )
    return 0


def dirname(shell: Shell, words: list[str]) -> int:
    shell.say((words[1].rpartition("/")[0] or "." if words[1:] else ".") + "\n")
    return 0
