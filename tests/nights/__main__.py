"""``scripts/nightly [STEP …]``: runs what takes too long for every change, and keeps a record.

Exit 0 if no step failed, else 1. A step that fails does not keep the others from running.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import os
import platform
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.nights import records, steps
from tests.nights.records import Ended, Night
from tests.nights.steps import ROOT, Step

SKIPPED = 77
"""Exit code of a step that could not look at anything: to pass, it must have."""


def main() -> int:
    options = _options()
    if options.page:
        return _write_page(check=options.page == "check")
    if options.record is not None:
        records.FOLDER.mkdir(exist_ok=True)
        night = Night.read(options.record / "night.json")
        file = records.FOLDER / f"{night.name}.json"
        if file.exists():
            night.merge(Night.read(file))
        night.write(file)
        return _write_page(check=False)
    if options.became is not None:
        night = Night.read(options.night / "night.json")
        night.resolve(*options.became)
        night.write(options.night / "night.json")
        return 0
    known = steps.read(steps.FILE.read_text())
    if options.list:
        for step in known:
            lacks = step.lacks()
            print(f"{step.name:24} {step.told(options.seed or 0)}{f' (needs {lacks})' if lacks else ''}")
        return 0
    return _run(known, options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/nightly", description=(__doc__ or "").split("\n\n", 1)[1])
    parser.add_argument("steps", nargs="*", metavar="STEP", help="only these, also if they have ended (default: all)")
    parser.add_argument("--list", action="store_true", help="list the steps")
    parser.add_argument(
        "--night", type=Path, metavar="FOLDER", help="go on with this night: what has ended is left out"
    )
    parser.add_argument("--seed", type=int, help="of a new night: repeats one (default: drawn)")
    parser.add_argument(
        "--record", type=Path, metavar="FOLDER", help="merge this night into docs/nights and docs/nights.md"
    )
    parser.add_argument("--became", nargs=2, metavar=("STEP", "TEXT"), help="with --night: what became of its failure")
    parser.add_argument("--page", choices=("write", "check"), help="write docs/nights.md from docs/nights, or check it")
    return parser.parse_args()


def _write_page(check: bool) -> int:
    page = records.page([Night.read(file) for file in records.FOLDER.glob("*.json")])
    if not check:
        records.PAGE.write_text(page)
    elif page != records.PAGE.read_text():
        print("docs/nights.md is not what scripts/nightly --page write makes of docs/nights", file=sys.stderr)
        return 1
    return 0


def _run(known: tuple[Step, ...], options: argparse.Namespace) -> int:
    if unknown := [name for name in options.steps if not any(_is(step, name) for step in known)]:
        print(f"scripts/nightly: no step is called {', '.join(unknown)}; see --list", file=sys.stderr)
        return 2
    folder, night = _night(options)
    print(f"nightly: seed {night.seed}; scripts/nightly --night {folder} goes on with this night", flush=True)
    failed = 0
    for step in known:
        if any(_is(step, name) for name in options.steps) if options.steps else step.name not in night.ended:
            night.take(ended := _carry_out(step, night.seed, folder))
            night.write(folder / "night.json")
            print(f"   {ended.outcome}: {ended.figure}", flush=True)
            failed += ended.outcome == "failed"
    print(f"\n{failed or 'no'} step{'s' * (failed > 1)} failed")
    return bool(failed)


def _is(step: Step, name: str) -> bool:
    """``soak`` is all of its parts."""
    return name in (step.name, step.name.removesuffix(f"-{step.part}"))


def _night(options: argparse.Namespace) -> tuple[Path, Night]:
    if options.night is not None and (options.night / "night.json").exists():
        (options.night / "logs").mkdir(exist_ok=True)  # of a night that was copied from docs/nights
        return options.night, Night.read(options.night / "night.json")
    seed = options.seed if options.seed is not None else int(time.time()) % 1_000_000
    name = f"{dt.datetime.now(dt.UTC):%Y-%m-%d}-{seed}"
    folder = (options.night or ROOT / "build" / "nights" / name).absolute()
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    return folder, Night(name, seed, _machine())


def _machine() -> str:
    cpus = [line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    kib = next((int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    model = cpus[0] if cpus else platform.machine()
    return f"{os.cpu_count()} cores ({model}), {kib / 2**20:.0f} GiB, Python {platform.python_version()}"


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def _carry_out(step: Step, seed: int, folder: Path) -> Ended:
    print(f"\n== {step.name}: {step.told(seed)}", flush=True)
    ended = Ended(step.name, step.told(seed), "skipped", "", commit=_commit())
    if lacks := step.lacks():
        ended.figure = f"needs {lacks}"
        return ended
    ended.began = f"{dt.datetime.now(dt.UTC):%Y-%m-%dT%H:%M:%SZ}"
    log = folder / "logs" / f"{step.name}.log"
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with TemporaryDirectory(prefix="kemu-night-") as scratch:
        environment = {
            **os.environ,
            "KEMU_STRICT": "1",
            "KEMU_NIGHTLY": "1",  # tests of drawn cases draw all of them
            "TMPDIR": scratch,
            "seed": str(seed),
            "part": str(step.part),
        }
        code = _play(step.run, environment, log)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended.wall_s = round(time.monotonic() - began, 1)
    ended.cpu_s = round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1)
    ended.outcome = {0: "passed", SKIPPED: "skipped"}.get(code, "failed")
    ended.figure = step.figure_in(log.read_text(errors="replace"))
    return ended


def _play(script: str, environment: dict[str, str], log: Path) -> int:
    """The exit code. What it prints goes to the terminal and into the log. Whatever ends the night ends the step, too,
    with all that it has started."""
    with (
        log.open("wb") as file,
        subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", script],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            env=environment,
            start_new_session=True,
        ) as child,
    ):
        assert child.stdout is not None
        try:
            for line in child.stdout:
                file.write(line)
                sys.stdout.write(line.decode(errors="replace"))
                sys.stdout.flush()
        except BaseException:
            _end(child)
            raise
    return child.returncode


def _end(child: subprocess.Popen[bytes]) -> None:
    """Its group has some seconds to clear up, whether or not the shell in it has ended by then."""
    with contextlib.suppress(ProcessLookupError):  # nobody is left
        os.killpg(child.pid, signal.SIGTERM)
        for _ in range(10 * steps.GRACE_S):
            child.poll()
            os.killpg(child.pid, 0)
            time.sleep(0.1)
        os.killpg(child.pid, signal.SIGKILL)


def _commit() -> str:
    """The commit, with a plus if files differ from it."""
    commit = _git("rev-parse", "--short=8", "HEAD")
    return commit + ("+" if commit and _git("status", "--porcelain", "--untracked-files=no") else "")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


if __name__ == "__main__":
    # Steps have sessions of their own: what ends this process does not reach them by itself.
    for ending in (signal.SIGINT, signal.SIGTERM):
        signal.signal(ending, lambda number, _: sys.exit(128 + number))
    sys.exit(main())
