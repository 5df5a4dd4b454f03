"""``kemu completion``, and the man pages. A wheel has both, made from the parsers by ``scripts/wheel_hook.py``.

Of packages only shtab and argparse-manpage are imported here: a build has little of what kemu needs.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import kemu
from kemu.doors.cli import exits
from kemu.doors.cli.parsers import Parser
from kemu.lab.scenario import catalog

COMPLETIONS = {
    "bash": "share/bash-completion/completions/kemu",
    "zsh": "share/zsh/site-functions/_kemu",
    "fish": "share/fish/vendor_completions.d/kemu.fish",
}
"""Where shells and their packages look, below the prefix of an installation."""
PAGES = "share/man/man1"


_KEPT = {
    "bash": "~/.local/share/bash-completion/completions/kemu",
    "zsh": "a folder of $fpath, as _kemu",
    "fish": "~/.config/fish/completions/kemu.fish",
}


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "completion",
        help="print the completion script of a shell",
        description="Print the script by which a shell completes commands, options, files and shipped scenarios. "
        + "; ".join(f"{shell}: kept in {place}" for shell, place in _KEPT.items())
        + '. For one session of bash or zsh: eval "$(kemu completion bash)".',
    )
    parser.add_argument("shell", choices=list(COMPLETIONS), metavar="SHELL", help=f"one of {', '.join(COMPLETIONS)}")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    text = _installed(options.shell)
    if text is None:  # a checkout
        text = script(options.parser, options.shell)
    sys.stdout.write(text)
    return exits.HOLDS


def files(parser: Parser) -> Mapping[str, str]:
    """The files that an installation has beside the package: path below its prefix → text."""
    completions = {path: script(parser, shell) for shell, path in COMPLETIONS.items()}
    return {**completions, **{f"{PAGES}/{name}": text for name, text in _pages(parser)}}


def script(parser: Parser, shell: str) -> str:
    """The script of a shell: commands, options, their values, files, and names of shipped scenarios."""
    import shtab

    scenarios = _scenarios(sorted(catalog.shipped()))
    for each in _all(parser):
        for action in each._actions:
            kind = scenarios if _is_scenario(action) else shtab.DIRECTORY if _is_folder(action) else shtab.FILE
            if kind is not shtab.FILE or action.type is Path or "file" in (action.dest, str(action.metavar).lower()):
                action.complete = kind  # type: ignore[attr-defined]
    made: str = shtab.complete(parser, shell)
    return made


def _installed(shell: str) -> str | None:
    """None in a checkout."""
    import importlib.metadata

    try:
        found = importlib.metadata.files("kemu") or ()
    except importlib.metadata.PackageNotFoundError:
        return None
    path = next((each for each in found if str(each).endswith(COMPLETIONS[shell])), None)
    try:
        return None if path is None else Path(str(path.locate())).read_text(encoding="utf-8")
    except OSError:
        return None


def _all(parser: Parser) -> Iterator[Parser]:
    yield parser
    for command in parser.commands.values():
        yield from _all(command)


def _is_scenario(action: argparse.Action) -> bool:
    return action.dest == "scenario" and not action.option_strings


def _is_folder(action: argparse.Action) -> bool:
    if action.option_strings:
        return action.metavar in ("DIR", "FOLDER")
    return action.dest in ("run", "folder")


def _scenarios(names: list[str]) -> dict[str, str | dict[str, str]]:
    """Completion of files and these names."""
    words = " ".join(names)
    return {
        "bash": "_kemu_scenarios",
        "zsh": "_kemu_scenarios",
        "fish": "(__kemu_scenarios)",
        "preamble": {
            "bash": f"_kemu_scenarios() {{\n  compgen -W {shlex.quote(words)} -- $1\n  _shtab_compgen_files $1\n}}",
            "zsh": f"_kemu_scenarios() {{\n  compadd {words}\n  _files\n}}",
            "fish": f"function __kemu_scenarios\n  printf '%s\\n' {words}\n"
            "  __fish_complete_path (commandline -ct)\nend",
        },
    }


def _pages(parser: Parser) -> Iterator[tuple[str, str]]:
    """``kemu.1``, and a page such as ``kemu-run.1`` for each command with its subcommands."""
    alone = argparse.ArgumentParser(prog=parser.prog, description=parser.description)
    alone.add_argument("--version", action="version", help="print the version, and end")
    lines = [".SH COMMANDS"]
    for action in parser._subparsers._actions if parser._subparsers else ():
        for each in getattr(action, "_choices_actions", ()):
            lines += [".TP", f"\\fBkemu {each.dest}\\fR", each.help or ""]
    lines += [".SH EXIT STATUS", parser.epilog or ""]
    yield "kemu.1", _page(alone, "\n".join(lines), [f"kemu-{name}(1)" for name in parser.commands])
    for name, command in parser.commands.items():
        yield f"kemu-{name}.1", _page(command, "", ["kemu(1)"])


def _page(parser: argparse.ArgumentParser, more: str, others: list[str]) -> str:
    """The page, without a date, which would differ between builds."""
    from argparse_manpage.manpage import Manpage

    about = {
        "project_name": "kemu",
        "prog": parser.prog.replace(" ", "-"),
        "version": kemu.__version__,
        "manual_title": "kemu",
        "manual_section": "1",
        "description": _first_sentence(parser.description or ""),
    }
    text = str(Manpage(parser, about, format="single-commands-section"))
    lines = [line for line in text.splitlines() if not line.startswith(".TH ")]
    lines += [more.replace("-", "\\-"), ".SH SEE ALSO", ", ".join(others).replace("-", "\\-")]
    return (
        "\n".join([f'.TH {about["prog"].upper()} 1 "" "kemu {kemu.__version__}" "kemu"', *filter(None, lines)]) + "\n"
    )


def _first_sentence(text: str) -> str:
    return " ".join(text.split()).partition(". ")[0].removesuffix(".")
