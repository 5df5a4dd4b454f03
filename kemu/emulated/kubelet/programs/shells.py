"""Carries out scripts in virtual time: what they print and when, how they end, and which files they leave behind.

A :class:`Shell` is driven by a generator that yields whenever time passes: seconds, or infinity for a program that runs
until it is stopped.
"""

from __future__ import annotations

import contextlib
import fnmatch
import math
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field

from kemu.emulated.kubelet.programs import arithmetic, syntax
from kemu.emulated.kubelet.programs import files as trees
from kemu.emulated.kubelet.programs.syntax import NotUnderstood, Part, Script, Word
from kemu.runtime import random_streams

Steps = Generator[float, None, int]
"""Yields seconds; returns the exit code."""

MOST_STEPS = 3_000
"""Most commands of a program; one that has carried out more is taken to run for ever."""
MOST_OUTPUT = 256 << 10
"""Most characters of a word, of the words of a command, and of what a command prints for another."""
_LONGEST_STRIPPED = 10_000
FOREVER = math.inf

NOT_FOUND, NOT_EXECUTABLE = 127, 126
TERM = "TERM"
INTERRUPTED = 143
"""Exit code of ``wait`` and of a job on that signal."""


class Exit(Exception):
    def __init__(self, code: int) -> None:
        self.code = code & 255


class _Loop(Exception):
    """``break`` or ``continue`` of so many loops."""

    def __init__(self, count: int, *, again: bool) -> None:
        self.count = count
        self.again = again


class _Return(Exception):
    """Ends a function."""

    def __init__(self, code: int) -> None:
        self.code = code & 255


@dataclass
class World:
    """What all shells of one program share."""

    files: trees.Files
    unix_s: float = 0.0
    """When the program starts."""
    user: str = "root"
    hostname: str = ""
    seed: str = ""
    unknown: frozenset[str] = frozenset()
    """Variables whose values are not known."""
    told: Callable[[float, int, str], None] = lambda at_s, descriptor, text: None
    """Hears what it prints: when, where (1 or 2), and what."""
    tools: Mapping[str, Callable[[Shell, list[str]], int]] = field(default_factory=dict)
    """Commands that take no time, by name …"""
    timed: Mapping[str, Callable[[Shell, Sequence[str]], Steps]] = field(default_factory=dict)
    """… and those that take some."""
    steps: int = 0
    """Commands that have been carried out."""
    tells_time: bool = False
    """A command has looked at the clock, or at what differs each time."""
    has_more_variables: bool = False
    """There are variables of which not even the names are known."""
    most_steps: int = MOST_STEPS
    main: Shell | None = None
    """The one that is process 1, to which signals go."""
    told_s: float = math.inf
    """When it was told to stop, as long as it has not reacted."""

    def __post_init__(self) -> None:
        self.random = random_streams.random_stream(0, self.seed)


@dataclass
class Shell:
    world: World
    variables: dict[str, str]
    cwd: str = "/"
    at_s: float = 0.0
    """Since the program started."""
    parameters: Sequence[str] = ("sh",)
    status: int = 0
    exits_on_error: bool = False
    traces: bool = False
    exported: set[str] = field(default_factory=set)
    stdin: str = ""
    jobs: list[float] = field(default_factory=list)
    """When each job in the background ends."""
    functions: dict[str, syntax.Command] = field(default_factory=dict)
    hidden: list[dict[str, str | None]] = field(default_factory=list)
    """For each function that runs: what its local variables hide."""
    is_tested: bool = False
    """A failure of the command that is carried out does not end a shell with ``set -e``."""
    outputs: dict[int, Callable[[str], None]] = field(default_factory=dict)
    """Where the descriptors lead; those that are missing to the world."""
    traps: dict[str, str] = field(default_factory=dict)
    """What it does on a signal, by its name without ``SIG``; empty: nothing."""
    waits: bool = False
    """For a job, which a signal interrupts."""

    def say(self, text: str, descriptor: int = 1) -> None:
        found = self.outputs.get(descriptor)
        if found is not None:
            found(text)
        else:
            self.world.told(self.at_s, descriptor, text)

    def complain(self, text: str, code: int = 1) -> int:
        self.say(text + "\n", 2)
        return code

    def environment(self) -> dict[str, str]:
        return {name: self.variables[name] for name in self.variables if name in self.exported}

    def fork(self) -> Shell:
        made = Shell(
            self.world,
            dict(self.variables),
            self.cwd,
            self.at_s,
            self.parameters,
            self.status,
            self.exits_on_error,
            self.traces,
            set(self.exported),
            self.stdin,
        )
        made.outputs = dict(self.outputs)
        made.functions, made.hidden = dict(self.functions), [{} for _ in self.hidden]
        return made

    # Scripts

    def script(self, script: Script, *, tested: bool = False) -> Steps:
        """``tested``: a failure in it does not end a shell with ``set -e``."""
        code = 0
        for item in script.items:
            if item.background:
                self._start_job(item)
                code = self.status = 0
                continue
            code = yield from self._item(item, tested=tested)
            if self.world.main is self and self.at_s >= self.world.told_s:
                yield from self.react()
        return code

    def react(self) -> Steps:
        """What its trap does; afterwards it goes on."""
        self.world.told_s = math.inf
        before = self.status
        yield from self.script(syntax.parse(self.traps.get(TERM, "")))
        self.status = before
        return before

    def _item(self, item: syntax.Item, *, tested: bool) -> Steps:
        last_is_tested = tested or bool(item.rest)
        code = yield from self._pipeline(item.first, tested=last_is_tested)
        for number, (operator, pipeline) in enumerate(item.rest):
            if (code == 0) == (operator == "&&"):
                is_last = number == len(item.rest) - 1
                code = yield from self._pipeline(pipeline, tested=tested or not is_last)
        return code

    def _start_job(self, item: syntax.Item) -> None:
        """Carried out at once, on a copy of the shell whose clock goes ahead."""
        child = self.fork()
        steps = child._item(syntax.Item(item.first, item.rest), tested=True)
        try:
            while True:
                if math.isinf(next(steps)) or self.world.steps > self.world.most_steps // 2:
                    child.at_s = math.inf
                    break
        except (StopIteration, Exit):
            pass
        self.jobs.append(child.at_s)

    def _pipeline(self, pipeline: syntax.Pipeline, *, tested: bool) -> Steps:
        commands = pipeline.commands
        before = self.stdin
        code = 0
        for number, command in enumerate(commands):
            if number == len(commands) - 1:
                shell = self if len(commands) == 1 else self.fork()
                shell.stdin = self.stdin
                code = yield from shell._command(command, tested=tested or pipeline.negated)
                self.at_s = shell.at_s
            else:
                child, printed = self.fork(), list[str]()
                child.stdin = self.stdin
                child.outputs[1] = _limited(printed)
                with contextlib.suppress(Exit):
                    yield from child._command(command, tested=True)
                self.at_s = child.at_s
                self.stdin = "".join(printed)
        self.stdin = before
        if pipeline.negated:
            code = int(code == 0)
        self.status = code
        if code and self.exits_on_error and not tested and not pipeline.negated:
            raise Exit(code)
        return code

    def _command(self, command: syntax.Command, *, tested: bool) -> Steps:
        if isinstance(command, syntax.Simple):
            self.is_tested = tested
            return (yield from self._simple(command))
        if isinstance(command, syntax.Function):
            self.functions[command.name] = command.body
            return 0
        with_redirects = yield from self._redirected(command.redirects)
        if with_redirects is None:
            return 1
        before, stdin = self.outputs, self.stdin
        self.outputs, self.stdin = with_redirects
        try:
            return (yield from self._compound(command, tested=tested))
        finally:
            self.outputs, self.stdin = before, stdin

    def _compound(self, command: syntax.Command, *, tested: bool) -> Steps:
        code = 0
        if isinstance(command, syntax.If):
            for condition, body in command.branches:
                if condition is None or (yield from self.script(condition, tested=True)) == 0:
                    return (yield from self.script(body, tested=tested))
            return 0
        if isinstance(command, syntax.Group):
            if not command.subshell:
                return (yield from self.script(command.body, tested=tested))
            child = self.fork()
            child.stdin = self.stdin
            try:
                code = yield from child.script(command.body, tested=tested)
            except Exit as end:
                code = end.code
            self.at_s = child.at_s
            return code
        if isinstance(command, syntax.While):
            while ((yield from self.script(command.condition, tested=True)) == 0) != command.negated:
                self._step()
                try:
                    code = yield from self.script(command.body, tested=tested)
                except _Loop as loop:
                    if self._leaves(loop):
                        break
            return code
        assert isinstance(command, syntax.For)
        values: list[str] = list(self.parameters[1:])
        if command.words is not None:
            values = []
            for word in command.words:
                values += yield from self.expand(word)
        for value in values:
            self._step()
            self.variables[command.name] = value
            try:
                code = yield from self.script(command.body, tested=tested)
            except _Loop as loop:
                if self._leaves(loop):
                    break
        return code

    @staticmethod
    def _leaves(loop: _Loop) -> bool:
        if loop.count > 1:
            raise _Loop(loop.count - 1, again=loop.again)
        return not loop.again

    def _step(self) -> None:
        self.world.steps += 1
        if self.world.steps > self.world.most_steps:
            raise Endless

    def _redirected(
        self, redirects: Sequence[syntax.Redirect]
    ) -> Generator[float, None, tuple[dict[int, Callable[[str], None]], str] | None]:
        outputs, stdin = dict(self.outputs), self.stdin
        for one in redirects:
            target = "".join((yield from self.expand(one.target, splits=False)))
            if one.operator == ">&" and target.isdigit():
                descriptor = int(target)
                outputs[one.descriptor] = outputs.get(descriptor) or self._to(descriptor)
                continue
            path = trees.joined(self.cwd, target)
            try:
                if one.operator == "<":
                    stdin = self.world.files.read(path)
                    continue
                sink = self._sink(path, append=one.operator.endswith(">>"))
            except trees.FilesError as error:
                self.complain(
                    f"{self.parameters[0]}: can't {'open' if one.operator == '<' else 'create'} {target}: {error}"
                )
                return None
            except trees.Unknown as error:
                raise NotUnderstood(str(error)) from None
            for descriptor in (1, 2) if one.operator in ("&>", "&>>", ">&") else (one.descriptor,):
                outputs[descriptor] = sink
        return outputs, stdin

    def _to(self, descriptor: int) -> Callable[[str], None]:
        return lambda text: self.world.told(self.at_s, descriptor, text)

    def _sink(self, path: str, *, append: bool) -> Callable[[str], None]:
        if path in ("/dev/stdout", "/dev/stderr", "/proc/1/fd/1", "/proc/1/fd/2"):
            return self._to(2 if path.endswith(("err", "2")) else 1)
        self.world.files.write(path, "", append=append)

        def write(text: str) -> None:
            self.world.files.write(path, text, append=True)

        return write

    def _simple(self, command: syntax.Simple) -> Steps:
        self._step()
        words: list[str] = []
        for word in command.words:
            words += yield from self.expand(word)
            _check_size(sum(map(len, words)))
        assigned: dict[str, str] = {}
        for name, word in command.assignments:
            self.status = 0
            assigned[name] = "".join((yield from self.expand(word, splits=False)))
        if not words:
            self.variables |= assigned
            found = yield from self._redirected(command.redirects)
            return self.status if found is not None else 1
        found = yield from self._redirected(command.redirects)
        if found is None:
            return 1
        if self.traces:
            self.say(f"+ {' '.join(words)}\n", 2)
        kept = {name: self.variables.get(name) for name in assigned}
        newly = set(assigned) - self.exported
        before, stdin = self.outputs, self.stdin
        self.variables |= assigned
        self.exported |= newly
        self.outputs, self.stdin = found
        try:
            return (yield from self.run(words))
        finally:
            if words[0] != "exec":
                self.outputs, self.stdin = before, stdin
            self.exported -= newly
            for name, value in kept.items():
                if value is None:
                    self.variables.pop(name, None)
                else:
                    self.variables[name] = value

    def run(self, words: Sequence[str]) -> Steps:
        """A command with its arguments. Raises NotUnderstood for one that kemu does not know."""
        name = words[0].rpartition("/")[2]
        if words[0] == "break" or words[0] == "continue":
            raise _Loop(int(words[1]) if words[1:] and words[1].isdigit() else 1, again=words[0] == "continue")
        function = self.functions.get(words[0])
        if function is not None:
            return (yield from self._call(function, words))
        if self.hidden and words[0] in ("return", "local"):
            return self._local(words[1:]) if words[0] == "local" else self._return(words[1:])
        timed = self.world.timed.get(name)
        if timed is not None:
            return (yield from timed(self, words))
        tool = self.world.tools.get(name)
        if tool is None:
            raise NotUnderstood(f"what {words[0]!r} does is not known")
        try:
            return tool(self, list(words))
        except trees.FilesError as error:
            return self.complain(f"{name}: {error}")
        except trees.Unknown as error:
            raise NotUnderstood(str(error)) from None

    def _call(self, body: syntax.Command, words: Sequence[str]) -> Steps:
        before = self.parameters
        self.parameters = (before[0], *words[1:])
        self.hidden.append({})
        try:
            return (yield from self._command(body, tested=self.is_tested))
        except _Return as end:
            return end.code
        finally:
            self.parameters = before
            for name, value in self.hidden.pop().items():
                if value is None:
                    self.variables.pop(name, None)
                else:
                    self.variables[name] = value

    def _return(self, words: Sequence[str]) -> int:
        raise _Return(int(words[0]) if words and words[0].isdigit() else self.status)

    def _local(self, words: Sequence[str]) -> int:
        for word in words:
            name, _, value = word.partition("=")
            self.hidden[-1].setdefault(name, self.variables.get(name))
            self.variables[name] = value
        return 0

    # Words

    def expand(self, word: Word, *, splits: bool = True) -> Generator[float, None, list[str]]:
        """The fields of a word."""
        fields: list[str] = []
        current, is_there, has_pattern, size = "", False, False, 0
        for part in word:
            if part.kind == "text":
                text = part.text
                if not part.quoted and not fields and not current and not is_there and re.match(r"~(/|$)", text):
                    text = self.variables.get("HOME", "/root") + text[1:]
                current += text
                is_there = is_there or part.quoted or bool(text)
                has_pattern = has_pattern or (not part.quoted and any(sign in text for sign in "*?["))
                continue
            if part.kind == "variable" and part.text == "@" and part.quoted and splits:
                given = list(self.parameters[1:])
                if given:
                    fields += [current + given[0], *given[1:-1]] if len(given) > 1 else []
                    current = given[-1] if len(given) > 1 else current + given[0]
                    is_there = True
                continue
            value = yield from self._value(part)
            size += len(value)
            _check_size(size)
            if part.quoted or not splits:
                current, is_there = current + value, True
                continue
            pieces = value.split()
            if not pieces:
                if value and (current or is_there):
                    fields.append(current)
                    current, is_there = "", False
                continue
            if value[0].isspace() and (current or is_there):
                fields.append(current)
                current = ""
            fields += [current + pieces[0], *pieces[1:-1]] if len(pieces) > 1 else []
            current = pieces[-1] if len(pieces) > 1 else current + pieces[0]
            is_there = True
            if value[-1].isspace():
                fields.append(current)
                current, is_there = "", False
        if is_there or current:
            fields.append(current)
        if has_pattern and splits and len(fields) == 1:
            return self._matching(fields[0])
        return fields if splits else ["".join(fields)]

    def _matching(self, pattern: str) -> list[str]:
        folder, _, last = pattern.rpartition("/")
        try:
            where = trees.joined(self.cwd, folder or ("/" if pattern.startswith("/") else "."))
            names = self.world.files.names(where)
        except trees.FilesError:
            return [pattern]
        except trees.Unknown as error:
            raise NotUnderstood(str(error)) from None
        found = [name for name in names if fnmatch.fnmatchcase(name, last) and not name.startswith(".")]
        prefix = pattern[: len(pattern) - len(last)]
        return [prefix + name for name in found] or [pattern]

    def _value(self, part: Part) -> Generator[float, None, str]:
        if part.kind == "arithmetic":
            expression = yield from self._inner(part.text)
            return str(arithmetic.value(expression, self.variable))
        if part.kind == "command":
            assert part.script is not None
            child, printed = self.fork(), list[str]()
            child.outputs[1] = _limited(printed)
            try:
                self.status = yield from child.script(part.script, tested=True)
            except Exit as end:
                self.status = end.code
            self.at_s = child.at_s
            return "".join(printed).rstrip("\n")
        name, operator = part.text, part.operator
        value = self.variable(name)
        if not operator:
            return value or ""
        if operator == "length":
            return str(len(value or ""))
        word = "".join((yield from self.expand(part.word, splits=False)))
        if operator[0] in "#%":
            return _stripped(value or "", operator, word)
        is_set = value is not None and (bool(value) or operator[0] != ":")
        if operator[-1] == "+":
            return word if is_set else ""
        if is_set:
            return value or ""
        if operator[-1] == "=":
            self.variables[name] = word
        return word

    def _inner(self, text: str) -> Generator[float, None, str]:
        """An arithmetic expression, of which commands and variables with ``$`` are expanded."""
        if "$" not in text and "`" not in text:
            return text
        script = syntax.parse('_="' + text.replace('"', "") + '"')
        command = script.items[0].first.commands[0]
        assert isinstance(command, syntax.Simple)
        return "".join((yield from self.expand(command.assignments[0][1], splits=False)))

    @staticmethod
    def process_of(job: int) -> int:
        """Its id."""
        return 7 + job

    def variable(self, name: str) -> str | None:
        if name == "?":
            return str(self.status)
        if name == "#":
            return str(len(self.parameters) - 1)
        if name in "@*":
            return " ".join(self.parameters[1:])
        if name in ("$", "PPID"):
            return "1"
        if name == "!":
            return str(self.process_of(len(self.jobs) - 1))
        if name.isdigit():
            return self.parameters[int(name)] if int(name) < len(self.parameters) else None
        if name == "RANDOM":
            self.world.tells_time = True
            return str(self.world.random.randrange(32768))
        if name == "PWD":
            return self.cwd
        if name == "SECONDS":
            self.world.tells_time = True
            return str(int(self.at_s))
        if name not in self.variables and (name in self.world.unknown or self.world.has_more_variables):
            raise NotUnderstood(f"the value of ${name} is not known here")
        return self.variables.get(name)


class Endless(Exception):
    """It has carried out so many commands that it is taken to run for ever."""


def _limited(printed: list[str]) -> Callable[[str], None]:
    size = 0

    def add(text: str) -> None:
        nonlocal size
        size += len(text)
        if size > MOST_OUTPUT:
            raise NotUnderstood("a command prints too much")
        printed.append(text)

    return add


def _check_size(size: int) -> None:
    if size > MOST_OUTPUT:
        raise NotUnderstood("the words of a command are too long")


def _stripped(value: str, operator: str, pattern: str) -> str:
    if len(value) > _LONGEST_STRIPPED:
        raise NotUnderstood("a variable is too long for its pattern")
    lengths = range(len(value) + 1)
    if operator in ("##", "%"):
        lengths = range(len(value), -1, -1)
    for length in lengths:
        if operator[0] == "#" and fnmatch.fnmatchcase(value[:length], pattern):
            return value[length:]
        if operator[0] == "%" and fnmatch.fnmatchcase(value[length:], pattern):
            return value[:length]
    return value


# Programs ------------------------------------------------------------------------------------------------------------


@dataclass
class Outcome:
    run_s: float | None
    """None: it runs until it is stopped."""
    exit_code: int = 0
    has_traps: bool = field(default=False, compare=False)
    """It may not stop at once when it is told to."""


class Process:
    """A command that is carried out as far as one wants to know."""

    def __init__(self, shell: Shell, command: Sequence[str]) -> None:
        self.shell = shell
        self._steps = self._guarded(command)
        self.outcome: Outcome | None = None
        """Once it is known."""
        self.next_s = 0.0
        """Until when it is carried out."""
        self._is_endless = False

    def _guarded(self, command: Sequence[str]) -> Steps:
        return (yield from _ending(self.shell.run(command)))

    def advance(self, until_s: float) -> Outcome | None:
        """Carry out what happens up to that time. Raises NotUnderstood."""
        while self.outcome is None and self.next_s <= until_s:
            now_s = self.next_s
            try:
                passed = next(self._steps)
            except StopIteration as end:
                self.outcome = self._outcome(self.next_s, int(end.value or 0) & 255)
            except Endless:
                self.outcome, self._is_endless = self._outcome(None), True
            except RecursionError:
                raise NotUnderstood("so deep a nesting") from None
            else:
                if math.isinf(passed):
                    self.outcome = self._outcome(None)
                else:
                    self.next_s = now_s + passed
        return self.outcome

    def _outcome(self, run_s: float | None, code: int = 0) -> Outcome:
        main = self.shell.world.main
        return Outcome(run_s, code, main is not None and TERM in main.traps)

    def outcome_of_all(self) -> Outcome:
        """Raises NotUnderstood."""
        while self.outcome is None:
            self.advance(self.next_s)
        return self.outcome

    def stop(self, at_s: float) -> Outcome | None:
        """What becomes of it if it is told to stop at that time (SIGTERM). A shell reacts when the command before it
        has ended, or at once if it waits for a job. None: it has no trap, and stops as anything else.

        Raises NotUnderstood."""
        self.advance(at_s)
        main = self.shell.world.main
        if main is None or TERM not in main.traps or (self.outcome is not None and self.outcome.run_s is not None):
            return None
        if main.traps[TERM]:
            main.world.told_s = at_s
            if self._is_endless:
                # It is somewhere in its loop.
                main.at_s, main.world.steps = at_s, 0
                self._steps = _ending(main.react(), goes_on=True)
            if self._is_endless or main.waits:
                self.outcome, self.next_s = None, at_s
        return self.outcome_of_all()


def _ending(steps: Steps, *, goes_on: bool = False) -> Steps:
    try:
        code = yield from steps
    except Exit as end:
        return end.code
    except _Loop:
        return 0
    if goes_on:
        yield FOREVER
    return code


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    return {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", **variables}
