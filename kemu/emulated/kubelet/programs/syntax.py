"""Scripts of the shell, as far as kemu understands them: lists, pipelines, ``if``, ``while``, ``until``, ``for``,
groups, functions, redirections, quotes, variables, arithmetic and substitution of commands. Anything else is
:class:`NotUnderstood`.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

LONGEST = 64 << 10
"""Longest script that is read, in characters."""
_DEEPEST = 30
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESERVED = frozenset(
    ("if", "then", "elif", "else", "fi", "while", "until", "for", "in", "do", "done", "case", "esac", "{", "}", "!")
)
_ENDS = frozenset(("then", "elif", "else", "fi", "do", "done", "}", "esac"))


class NotUnderstood(Exception):
    """What a program would do is not known."""


class Part(NamedTuple):
    kind: str
    """``text``, ``variable``, ``command`` or ``arithmetic``."""
    text: str
    """The text, the name, or the expression."""
    quoted: bool
    script: Script | None = None
    operator: str = ""
    """``:-``, ``-``, ``:+``, ``+``, ``:=``, ``=``, ``#`` (length), ``##``, ``%`` or ``%%`` of a variable …"""
    word: tuple[Part, ...] = ()
    """… and what stands behind it."""


Word = tuple[Part, ...]


class Redirect(NamedTuple):
    descriptor: int
    operator: str
    """``>``, ``>>``, ``<`` or ``>&``."""
    target: Word


@dataclass(frozen=True)
class Simple:
    assignments: tuple[tuple[str, Word], ...]
    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True)
class If:
    branches: tuple[tuple[Script | None, Script], ...]
    """Condition and what is done then; a condition None: else."""
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True)
class While:
    condition: Script
    body: Script
    negated: bool
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True)
class For:
    name: str
    words: tuple[Word, ...] | None
    """None: the positional parameters."""
    body: Script
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True)
class Group:
    body: Script
    subshell: bool
    redirects: tuple[Redirect, ...] = ()


@dataclass(frozen=True)
class Function:
    """Is defined, and not called."""

    name: str
    body: Command


Command = Simple | If | While | For | Group | Function


@dataclass(frozen=True)
class Pipeline:
    commands: tuple[Command, ...]
    negated: bool


@dataclass(frozen=True)
class Item:
    """Pipelines joined by ``&&`` and ``||``."""

    first: Pipeline
    rest: tuple[tuple[str, Pipeline], ...] = ()
    background: bool = False


@dataclass(frozen=True)
class Script:
    items: tuple[Item, ...] = field(default_factory=tuple)


@functools.lru_cache(512)
def parse(text: str) -> Script:
    """Raises NotUnderstood."""
    if len(text) > LONGEST:
        raise NotUnderstood("the script is too long")
    reader = _Reader(text)
    found = reader.script()
    if reader.at < len(text):
        reader.fail(f"{text[reader.at : reader.at + 10]!r}")
    return found


class _Reader:
    def __init__(self, text: str, at: int = 0, depth: int = 0) -> None:
        self.text = text
        self.at = at
        self.depth = depth

    def fail(self, what: str) -> NoReturn:
        line = self.text.count("\n", 0, self.at) + 1
        raise NotUnderstood(f"the shell's script, line {line}: {what} is not understood")

    # Tokens

    def _blanks(self) -> None:
        text = self.text
        while self.at < len(text):
            if text[self.at] in " \t\r":
                self.at += 1
            elif text.startswith("\\\n", self.at):
                self.at += 2
            elif text[self.at] == "#":
                end = text.find("\n", self.at)
                self.at = len(text) if end < 0 else end
            else:
                return

    def _lines(self) -> None:
        self._blanks()
        while self.at < len(self.text) and self.text[self.at] == "\n":
            self.at += 1
            self._blanks()

    def _peek(self, *tokens: str) -> str:
        self._blanks()
        return next((one for one in tokens if self.text.startswith(one, self.at)), "")

    def _take(self, *tokens: str) -> str:
        found = self._peek(*tokens)
        self.at += len(found)
        return found

    def _reserved(self) -> str:
        """The reserved word that comes next."""
        self._blanks()
        found = re.compile(r"[a-z{}!]+(?=[\s;&|()]|$)").match(self.text, self.at)
        return found[0] if found and found[0] in _RESERVED else ""

    def _expect(self, word: str) -> None:
        self._lines()
        if self._reserved() != word:
            self.fail(f"a script without {word!r}")
        self.at += len(word)

    # Grammar

    def script(self) -> Script:
        self.depth += 1
        if self.depth > _DEEPEST:
            self.fail("so deep a nesting")
        items: list[Item] = []
        while True:
            self._lines()
            if self.at >= len(self.text) or self.text[self.at] in ")`" or self._reserved() in _ENDS:
                break
            item = self._item()
            if self._peek(";;"):
                self.fail("';;'")
            if self._peek("&") and not self._peek("&&"):
                self.at += 1
                item = Item(item.first, item.rest, background=True)
                items.append(item)
                continue
            items.append(item)
            if not self._take(";", "\n") and not (
                self.at >= len(self.text) or self.text[self.at] in ")`" or self._reserved() in _ENDS
            ):
                self.fail(f"{self.text[self.at : self.at + 10]!r}")
        self.depth -= 1
        return Script(tuple(items))

    def _item(self) -> Item:
        first = self._pipeline()
        rest: list[tuple[str, Pipeline]] = []
        while operator := self._take("&&", "||"):
            self._lines()
            rest.append((operator, self._pipeline()))
        return Item(first, tuple(rest))

    def _pipeline(self) -> Pipeline:
        negated = False
        while self._reserved() == "!":
            self.at += 1
            negated = not negated
        commands = [self._command()]
        while self._peek("|") and not self._peek("||"):
            self.at += 1
            self._lines()
            commands.append(self._command())
        return Pipeline(tuple(commands), negated)

    def _command(self) -> Command:
        word = self._reserved()
        self._blanks()
        if word == "if":
            return self._if()
        if word in ("while", "until"):
            self.at += len(word)
            condition = self.script()
            return While(condition, self._body(), word == "until", self._redirects())
        if word == "for":
            return self._for()
        if word == "{":
            self.at += 1
            body = self.script()
            self._expect("}")
            return Group(body, False, self._redirects())
        if word:
            self.fail(repr(word))
        if self._peek("(("):
            self.fail("'(('")
        if found := re.compile(r"([A-Za-z_]\w*)[ \t]*\([ \t]*\)").match(self.text, self.at):
            self.at = found.end()
            self._lines()
            return Function(found[1], self._command())
        if self._take("("):
            body = self.script()
            if not self._take(")"):
                self.fail("a '(' that stays open")
            return Group(body, True, self._redirects())
        return self._simple()

    def _body(self) -> Script:
        self._expect("do")
        body = self.script()
        self._expect("done")
        return body

    def _if(self) -> If:
        self.at += 2
        branches: list[tuple[Script | None, Script]] = []
        while True:
            condition = self.script()
            self._expect("then")
            branches.append((condition, self.script()))
            self._lines()
            word = self._reserved()
            self.at += len(word)
            if word == "else":
                branches.append((None, self.script()))
                self._expect("fi")
                return If(tuple(branches), self._redirects())
            if word == "fi":
                return If(tuple(branches), self._redirects())
            if word != "elif":
                self.fail("an 'if' without 'fi'")

    def _for(self) -> For:
        self.at += 3
        self._blanks()
        name = _NAME.match(self.text, self.at)
        if name is None:
            self.fail("'for' without a name")
        self.at = name.end()
        self._lines()
        words: tuple[Word, ...] | None = None
        if self._reserved() == "in":
            self.at += 2
            found = []
            while (word := self._word()) is not None:
                found.append(word)
            words = tuple(found)
        self._take(";")
        return For(name[0], words, self._body(), self._redirects())

    def _redirects(self) -> tuple[Redirect, ...]:
        found = []
        while (one := self._redirect()) is not None:
            found.append(one)
        return tuple(found)

    def _redirect(self) -> Redirect | None:
        self._blanks()
        sign = re.compile(r"(\d?)(&>>?|>>|>&|>\|?|<<<?|<)").match(self.text, self.at)
        if sign is None:
            return None
        if sign[2].startswith("<<"):
            self.fail("a here-document")
        self.at = sign.end()
        target = self._word()
        if target is None:
            self.fail("a redirection without a file")
        operator = sign[2].replace(">|", ">")
        descriptor = int(sign[1]) if sign[1] else 0 if operator == "<" else 1
        return Redirect(descriptor, operator, target)

    def _simple(self) -> Simple:
        assignments: list[tuple[str, Word]] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
        while True:
            one = self._redirect()
            if one is not None:
                redirects.append(one)
                continue
            found = re.compile(r"([A-Za-z_]\w*)=").match(self.text, self.at) if not words else None
            if found is not None:
                self.at = found.end()
                blank = self.at >= len(self.text) or self.text[self.at] in " \t\n;&|)"
                assignments.append((found[1], () if blank else self._word() or ()))
                continue
            word = self._word()
            if word is None:
                break
            words.append(word)
        if not words and not assignments and not redirects:
            self.fail(repr(self.text[self.at : self.at + 10]))
        return Simple(tuple(assignments), tuple(words), tuple(redirects))

    # Words

    def _word(self) -> Word | None:
        self._blanks()
        parts: list[Part] = []
        begin = self.at
        while self.at < len(self.text):
            sign = self.text[self.at]
            if sign in " \t\r\n;&|<>()":
                break
            if sign == "'":
                end = self.text.find("'", self.at + 1)
                if end < 0:
                    self.fail("a quote that stays open")
                parts.append(Part("text", self.text[self.at + 1 : end], True))
                self.at = end + 1
            elif sign == '"':
                self.at += 1
                parts.extend(self._quoted())
            elif sign == "\\":
                if not self.text.startswith("\\\n", self.at):
                    parts.append(Part("text", self.text[self.at + 1 : self.at + 2], True))
                self.at += 2
            elif sign in "$`":
                parts.append(self._expansion(quoted=False))
            else:
                found = re.compile(r"[^\s;&|<>()'\"\\$`]+").match(self.text, self.at)
                assert found is not None
                parts.append(Part("text", found[0], False))
                self.at = found.end()
        return tuple(parts) if self.at > begin else None

    def _quoted(self, end: str = '"') -> list[Part]:
        parts = [Part("text", "", True)]
        while (sign := self.text[self.at : self.at + 1]) != end:
            if not sign:
                self.fail("a quote that stays open")
            if sign == "\\" and self.text[self.at + 1 : self.at + 2] in ("$", "`", '"', "\\", "\n"):
                following = self.text[self.at + 1]
                parts.append(Part("text", "" if following == "\n" else following, True))
                self.at += 2
            elif sign in "$`":
                parts.append(self._expansion(quoted=True))
            else:
                parts.append(Part("text", sign, True))
                self.at += 1
        self.at += 1
        return parts

    def _expansion(self, *, quoted: bool) -> Part:
        text = self.text
        if text[self.at] == "`":
            end = text.find("`", self.at + 1)
            if end < 0:
                self.fail("a backquote that stays open")
            inner = text[self.at + 1 : end].replace("\\$", "$").replace('\\"', '"')
            self.at = end + 1
            return Part("command", "", quoted, parse(inner))
        if text.startswith("$((", self.at):
            begin, depth, at = self.at + 3, 2, self.at + 3
            while at < len(text) and depth:
                depth += {"(": 1, ")": -1}.get(text[at], 0)
                at += 1
            if depth or text[at - 2 : at] != "))":
                self.fail("an arithmetic expression that stays open")
            self.at = at
            return Part("arithmetic", text[begin : at - 2], quoted)
        if text.startswith("$(", self.at):
            self.at += 2
            script = self.script()
            if not self._take(")"):
                self.fail("a '$(' that stays open")
            return Part("command", "", quoted, script)
        if text.startswith("${", self.at):
            return self._braced(quoted=quoted)
        found = re.compile(r"\$([A-Za-z_]\w*|[0-9?$#@*!])").match(text, self.at)
        if found is None:
            self.at += 1
            return Part("text", "$", quoted)
        self.at = found.end()
        return Part("variable", found[1], quoted)

    def _braced(self, *, quoted: bool) -> Part:
        found = re.compile(r"\$\{(#?)([A-Za-z_]\w*|[0-9?@*#])").match(self.text, self.at)
        if found is None:
            self.fail("'${'")
        self.at = found.end()
        if found[1]:
            if not self.text.startswith("}", self.at):
                self.fail("'${#'")
            self.at += 1
            return Part("variable", found[2], quoted, operator="length")
        sign = re.compile(r":?[-+=]|##?|%%?").match(self.text, self.at)
        operator = sign[0] if sign else ""
        self.at += len(operator)
        parts = self._quoted("}") if operator else []
        if not operator:
            if not self.text.startswith("}", self.at):
                self.fail("'${'")
            self.at += 1
        return Part("variable", found[2], quoted, operator=operator, word=tuple(parts))
