"""Parsing of the command line: argparse, with mistakes reported in one sentence and a suggestion.

A mistake raises UsageError with the usage of the command that it was made in; :mod:`kemu.doors.cli.failures` prints it.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from kemu.errors import UsageError
from kemu.runtime.words import nearest_word

SCENARIO = "a scenario file, the name of a shipped one (kemu scenarios list), or - for standard input"

_TRACE = "kemu trace RUN POD shows what a pod went through"
_STORY = "kemu story RUN tells what happened"
_EVENTS = "objects change by the scenario's events:"
KUBECTL = {
    "get": f"after a run there is no cluster to ask; {_STORY}, {_TRACE}",
    "describe": f"after a run there is no cluster to ask; {_TRACE}",
    "events": _STORY,
    "logs": f"simulated containers print nothing; {_TRACE}",
    "apply": "put the objects into a scenario, spec.manifests: [{file: FILE}], and kemu run SCENARIO",
    "create": "put the objects into a scenario, spec.manifests: [{file: FILE}], and kemu run SCENARIO",
    "delete": f"{_EVENTS} {{at: 5s, delete: {{pod: NAME}}}}",
    "edit": f"{_EVENTS} {{at: 5s, patch: {{kind: KIND, name: NAME, merge: {{…}}}}}}",
    "patch": f"{_EVENTS} {{at: 5s, patch: {{kind: KIND, name: NAME, merge: {{…}}}}}}",
    "label": f"{_EVENTS} {{at: 5s, patch: {{kind: KIND, name: NAME, merge: {{metadata: {{labels: {{…}}}}}}}}}}",
    "annotate": f"{_EVENTS} {{at: 5s, patch: {{kind: KIND, name: NAME, merge: {{metadata: {{annotations: {{…}}}}}}}}}}",
    "scale": f"{_EVENTS} {{at: 5s, patch: {{kind: ReplicaSet, name: NAME, merge: {{spec: {{replicas: 3}}}}}}}}",
    "cordon": f"{_EVENTS} {{at: 5s, cordon: {{node: NAME}}}}",
    "uncordon": f"{_EVENTS} {{at: 5s, uncordon: {{node: NAME}}}}",
    "drain": f"{_EVENTS} {{at: 5s, drain: {{node: NAME}}}}",
    "taint": f"{_EVENTS} {{at: 5s, taint: {{node: NAME, key: KEY, effect: NoSchedule}}}}",
    "wait": "a scenario states what must come true and when: expect: [{pod: NAME, bound: {before: 10s}}]",
    "top": "what pods use is stated in the scenario: kemu.dev/usage, or usage of a workload",
    "exec": "simulated containers run no program",
    "attach": "simulated containers run no program",
    "cp": "simulated containers have no files",
    "port-forward": "simulated containers have no network",
    "proxy": "simulated containers have no network",
    "expose": "simulated containers have no network",
    "rollout": "Deployments are not simulated; write a ReplicaSet in spec.manifests",
    "autoscale": "autoscalers are not simulated; change spec.replicas by an event of the scenario",
    "config": "kemu makes the cluster that it runs; there is no kubeconfig",
    "cluster-info": "kemu makes the cluster that it runs, from spec.nodes of the scenario",
}
"""What stands in for the commands of kubectl."""

OTHER_WORDS = {
    "check": "scenarios validate", "examples": "scenarios list", "help": "--help",
    "lint": "scenarios validate", "ls": "scenarios list", "search": "explore", "simulate": "run", "start": "run",
    "test": "run", "version": "--version",
}  # fmt: skip
"""Words for which kemu has another one."""


class Parser(argparse.ArgumentParser):
    """One command, or one with further commands below it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.commands: dict[str, Parser] = {}
        """Below it, by name."""
        self.outer: Parser | None = None

    def add_subparsers(self, **kwargs: Any) -> Any:
        action = super().add_subparsers(**kwargs)
        self.commands = action.choices
        return action

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        words = list(args or ())
        self._check_options(words)
        for command in self.commands.values():
            command.outer = self
        word = next((word for word in words if not word.startswith("-")), None)
        if self.commands and word is not None and word not in self.commands:
            self.error(self._no_command(word))
        found, extras = super().parse_known_args(words, namespace)
        if extras:
            self.error(f"{extras[0]!r} is one argument too many")
        return found, []

    def error(self, message: str) -> NoReturn:
        raise UsageError(self._told(message), self.prog, self.format_usage())

    def _told(self, message: str) -> str:
        """argparse's messages in kemu's words."""
        missing = message.removeprefix("the following arguments are required: ")
        if missing != message:
            name = missing.partition(",")[0]
            about = next((each.help for each in self._actions if name in (each.metavar, each.dest)), None)
            return f"{name} is missing" + (f": {about}" if about else f": one of {', '.join(self.commands)}")
        choice = re.fullmatch(r"argument (.+): invalid choice: '(.*)' \(choose from (.+)\)", message)
        if choice is not None:
            words = [word.strip().strip("'") for word in choice[3].split(",")]
            near = nearest_word(choice[2], words)
            return f"{choice[1]}: must be {' or '.join(words)}, not {choice[2]!r}{_meant(near)}"
        if message.endswith("expected one argument"):
            return message.removeprefix("argument ").replace("expected one argument", "a value is missing")
        return message.removeprefix("argument ")

    def _check_options(self, words: Sequence[str]) -> None:
        """Reject the first option that the command does not have."""
        known = self._option_string_actions
        for word in words:
            if word == "--" or (self.commands and not word.startswith("-")):
                return  # the rest are no options of this command
            name = word.partition("=")[0]
            if not re.fullmatch(r"--\w[\w-]*", name) or any(option.startswith(name) for option in known):
                continue
            owners = self._owners(name)
            near = nearest_word(name, [option for option in known if option.startswith("--")])
            if owners and not (near and name.startswith(near)):
                near = ""  # Rather another command than another word.
            has = f"; {_and(owners)} {'has' if len(owners) == 1 else 'have'} it" if owners else ""
            self.error(f"no option {name}{_meant(near)}{has}")

    def _owners(self, option: str) -> list[str]:
        """Commands beside this one that have the option."""
        top = self
        while top.outer is not None:
            top = top.outer
        return [command.prog for command in top._leaves() if option in command._option_string_actions]

    def _leaves(self) -> Iterable[Parser]:
        if not self.commands:
            yield self
        for command in self.commands.values():
            yield from command._leaves()

    def _no_command(self, word: str) -> str:
        below = {name: f"{command.prog} {name}" for command in self.commands.values() for name in command.commands}
        if self.outer is None and word in below:
            return f"no command {word!r} (did you mean {below[word]}?)"
        if self.outer is None and word in KUBECTL:
            return f"no command {word!r}, which is kubectl's: {KUBECTL[word]}"
        near = OTHER_WORDS.get(word, "") if self.outer is None else ""
        found = nearest_word(word, [*self.commands, *below])
        near = near or (found if found in self.commands else below.get(found, ""))
        if near:
            return (
                f"no command {word!r} (did you mean {near if near.startswith(self.prog) else f'{self.prog} {near}'}?)"
            )
        if self.outer is None and re.search(r"\.ya?ml$", word):
            return f"no command {word!r} (did you mean kemu run {word}?)"
        return f"no command {word!r}; there are {', '.join(self.commands)}"


def _meant(near: str) -> str:
    return f" (did you mean {near}?)" if near else ""


def _and(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def seconds(text: str) -> float:
    """A time on the command line, as 90s or 5m."""
    from kemu.emulated.settings import values

    try:
        return values.duration_ns(text) / 1e9
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def whole_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number, not {text!r}") from None


def cells(text: str) -> dict[str, str | int]:
    """``kubelets=100,schedulers=own``. The loader says whether there is such a kind, and such a share."""
    found: dict[str, str | int] = {}
    for item in text.split(","):
        kind, equals, share = item.strip().partition("=")
        if not equals or not kind or not share:
            raise argparse.ArgumentTypeError(f"write it as KIND=SHARE,KIND=SHARE, not {text!r}")
        found[kind] = int(share) if share.isdecimal() else share
    return found


def count(text: str) -> int:
    number = whole_number(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {text}")
    return number


def positive_number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number greater than 0, not {text!r}")
    return value
