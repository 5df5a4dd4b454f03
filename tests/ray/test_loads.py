"""How busy the cells of a run are, and what the driver makes of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kemu.doors.cli.progress import Line
from kemu.lab.scenario.playing import progress as states
from kemu.lab.scenario.playing.progress import Progress
from kemu.runtime import loads

SECOND = 1_000_000_000


def sample(second: float, **amounts: float) -> Any:
    """``cpu``, ``loop``, ``queued``, ``late`` in seconds; ``calls``, ``memory`` in MiB."""
    return SimpleNamespace(
        real_ns=int(second * SECOND),
        cpu_ns=int(amounts.get("cpu", 0) * SECOND),
        loop_cpu_ns=int(amounts.get("loop", 0) * SECOND),
        loop_queued_ns=int(amounts.get("queued", 0) * SECOND),
        loop_late_ns=int(amounts.get("late", 0) * SECOND),
        memory_bytes=int(amounts.get("memory", 100)) << 20,
        calls=int(amounts.get("calls", 0)),
        open_calls=0,
        unsent_events=0,
    )


def measured(**shares: tuple[float, float]) -> list[loads.Load]:
    """Cells that ran, and waited for a core, for these shares of ten seconds."""
    found = loads.Loads()
    for name, (ran, queued) in shares.items():
        actors = ("apiserver/0",) if name == "apiservers" else ("kubelet/a", "kubelet/b")
        found.add(name, sample(0), actors)
        found.add(name, sample(10, cpu=ran * 10, loop=ran * 10, queued=queued * 10), actors)
    return list(found.by_cell.values())


def test_rates_are_of_the_run_and_the_most_of_a_second() -> None:
    found = loads.Loads()
    found.add("store", sample(0, cpu=1, loop=1, calls=10), ("store",))
    found.begin_run()
    found.add("store", sample(1, cpu=5, loop=4, calls=100), ("store",))
    found.add("store", sample(2, cpu=5.5, loop=4.4, calls=300, late=0.02, memory=120), ("store",))
    found.add("store", sample(4, cpu=5.5, loop=4.4, calls=300, memory=110), ("store",))
    found.lag("store", 0.5)
    data = found.of("store").data()
    assert (data["cpu"], data["cpu_max"], data["loop"]) == (round(0.5 / 3, 3), 0.5, round(0.4 / 3, 3))
    assert (data["calls_per_s"], data["late_max_s"], data["memory_mib"]) == (round(200 / 3, 1), 0.02, 120)
    assert (data["actors"], data["log_lag_max_s"]) == (1, 0.5)


def test_a_process_in_anothers_place_counts_from_nothing() -> None:
    found = loads.Loads()
    found.add("store", sample(100, cpu=50), ("store",))
    found.add("store", sample(101, cpu=50.5), ("store",))
    found.of("store").begin_process()
    found.add("store", sample(1, cpu=0.3), ("store",))
    found.add("store", sample(2, cpu=0.8), ("store",))
    assert found.of("store").data()["cpu"] == 0.5


def test_what_comes_after_the_run_does_not_count() -> None:
    found = loads.Loads()
    found.add("store", sample(1), ("store",))
    found.begin_run()
    found.end_run()
    found.add("store", sample(2, cpu=1), ())
    found.lag("store", 9.0)
    assert found.of("store").data()["cpu"] == found.of("store").data()["log_lag_max_s"] == 0


def test_the_bottleneck_is_said_in_words() -> None:
    def said(machine_busy: float, **shares: tuple[float, float]) -> str:
        return loads.bottleneck(measured(**shares), machine_busy, cores=2)

    text = "the cell of apiserver/0 used 98% of a core, and more than one it cannot use"
    assert said(0.7, apiservers=(0.98, 0), kubelets=(0.2, 0)) == text
    text = said(1.0, apiservers=(0.4, 0.5), kubelets=(0.2, 0.1))
    assert text.startswith(
        "the machine: of its 2 cores the run used 0.6 and other programs 1.4; the cell of apiserver/0"
    )
    assert "waited for a core for 50% of it" in text
    assert said(0.3, kubelets=(0.4, 0)).startswith("none: the busiest, the cell kubelets, used 40% of a core")
    assert loads.bottleneck([], 0, 2).startswith("not known")
    # Of a run of less than a second, cells have told nothing.
    assert said(1.0, driver=(0.1, 0.1), kubelets=(0.0, 0.0)).startswith("not known")
    slow = measured(kubelets=(0.4, 0))
    slow[0].lag(7.0)
    assert loads.bottleneck(slow, 0.3, 2) == "the log: that of the cell kubelets was 7.0 s behind"


def test_the_live_display_has_a_line_for_each_of_the_busiest_cells() -> None:
    progress = Progress()
    progress.phase, progress.duration_ns = states.RUNNING, 60 * SECOND
    assert "\n" not in Line("storm").text(progress, 1)
    progress.loads = {load.name: load for load in measured(**{f"c{n}": (n / 10, 0.0) for n in range(1, 9)})}
    first, titles, busiest, *rest, more = Line("storm").text(progress, 1).split("\n")
    assert first.startswith("storm ")
    assert titles.split() == ["cell", "core", "calls/s", "queue", "memory", "log", "behind"]
    assert busiest.split()[:2] == ["c8", "80%"]
    assert len(rest) == 5
    assert more == "  and 2 more, less busy"
