"""The page of an incident: what led to what, curves, remedies, what the cluster said; on paper and on a phone."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, sync_playwright

from kemu.doors.cli import main, run_folders
from kemu.errors import KemuError
from kemu.lab.scenario.loading import loader
from kemu.lab.tell import people
from kemu.lab.tell.causes import finding
from kemu.lab.tell.live import causes, runs
from kemu.lab.tell.page import folds, remedies
from kemu.runtime.runlog.frames import FILE_NAME, Reader, Writer

EXAMPLE = Path(__file__).parents[2] / "examples" / "incidents" / "leak"
CHROMIUM = shutil.which("chromium")
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="no chromium (scripts/setup --system)")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the example, and what a remedy comes to."""
    place = tmp_path_factory.mktemp("incident")
    assert main.main(["import", str(EXAMPLE), "--out", str(place / "leak")]) == 0
    assert main.main(["run", str(place / "leak"), "--out", str(place / "run"), "--json"]) == 0
    remedy = str(EXAMPLE.parent / "remedies" / "limit.yaml")
    words = ["--seeds", "2", "--jobs", "1", "--goal", "evictions < 5", "--out", str(place / "compared"), "--json"]
    assert main.main(["compare", str(place / "leak"), "--with", remedy, *words]) == 0
    file = str(place / "page.html")
    assert main.main(["report", str(place / "run"), "--compare", str(place / "compared"), "--out", file]) == 0
    return place


@pytest.fixture(scope="module")
def page(folder: Path) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        opened = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
        wrong: list[str] = []
        opened.on("console", lambda message: wrong.append(message.text))
        opened.on("pageerror", lambda error: wrong.append(str(error)))
        opened.goto((folder / "page.html").as_uri())
        opened.wait_for_selector("html[data-ready]")
        yield opened
        browser.close()
    assert wrong == []


@pytest.mark.thorough
@needs_chromium
def test_the_first_screen_tells_what_led_to_what_and_names_the_best_remedy(page: Page) -> None:
    first = page.locator("section.first").first
    told = first.inner_text()
    assert "! " in told.splitlines()[0]  # nothing was expected, and that is no success
    assert "As the scenario expects" not in told
    root = first.locator(".chain .root").first.inner_text()
    assert "shop/checkout" in root
    assert first.locator(".chain li").count() >= 3
    assert first.locator(".curve svg").count() == 4
    assert re.search(r"Memory used on nodes\s+worker-\d is fullest: \d+ % at \d+ min", told)
    assert "Best remedy: limit" in told
    assert "checkout limits memory none → 3Gi" in told
    assert first.locator("th.best").inner_text() == "★ best limit"
    better = first.locator("td.better").first.inner_text()
    assert re.search(r"\N{MINUS SIGN}[\d.]+ ✓ better", better)


@needs_chromium
def test_what_the_cluster_said_stands_beside_the_run(page: Page) -> None:
    rows = page.locator("table.beside tbody tr").all_inner_texts()
    said = next(number for number, row in enumerate(rows) if "EvictionThresholdMet, 2 times" in row)
    assert rows[said].startswith("21 min 30 s")
    assert any("are evicted" in row for row in rows[said + 1 :])


OUTSIDE = """() => {
  const found = [], [width, height] = [192, 259.2].map((mm) => mm * 96 / 25.4);
  const left = document.body.getBoundingClientRect().left;
  const clipping = [...document.querySelectorAll("main, main *")].filter((one) =>
    getComputedStyle(one).overflow === "hidden" &&
    (one.scrollHeight > one.clientHeight + 1 || one.scrollWidth > one.clientWidth + 1));
  const isOut = (box) => box.width > 1 &&
    (box.right - left > width + 1 || box.left < left - 1 || box.bottom + scrollY > height + 1);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!node.data.trim() || !parent.checkVisibility() || parent.matches(".unseen, .skip")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    if (clipping.some((one) => one.contains(node)) || [...range.getClientRects()].some(isOut)) found.push(node.data);
  }
  return found;
}"""
"""Texts that are not whole on both A4 and Letter, while the page is laid out as for print."""


def printed(page: Page) -> tuple[list[int], list[str]]:
    """Numbers of pages on A4 and Letter, and the texts that do not fit."""
    margin = dict.fromkeys(("top", "bottom", "left", "right"), "9mm")
    pages = [
        len(re.findall(rb"/Type\s*/Page\b(?!s)", page.pdf(format=paper, margin=margin, print_background=True)))  # type: ignore[arg-type]
        for paper in ("A4", "Letter")
    ]
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    outside = page.evaluate(OUTSIDE)
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    return pages, outside


@needs_chromium
def test_it_prints_whole_on_one_page(page: Page, folder: Path, tmp_path: Path) -> None:
    """With remedies, without, with few things to say; and with too many, of which it says how many are left out."""
    before = page.evaluate("document.body.getBoundingClientRect().width")
    assert printed(page) == ([1, 1], [])
    assert page.evaluate("document.body.getBoundingClientRect().width") == before
    few = tmp_path / "few"
    assert main.main(["run", "seeds/multi-scheduler-race", "--out", str(few), "--report", "--json"]) == 0
    assert main.main(["report", str(folder / "run"), "--out", str(folder / "alone.html")]) == 0
    for file in (folder / "alone.html", few / "report.html"):
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-ready]")
        assert printed(page) == ([1, 1], []), file
    page.goto((folder / "page.html").as_uri())
    page.wait_for_selector("html[data-ready]")
    page.evaluate(
        """() => {
          const rows = document.querySelector(".beside tbody");
          for (let number = 0; number < 200; number++) rows.append(rows.firstElementChild.cloneNode(true));
        }"""
    )
    assert printed(page) == ([1, 1], [])
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert re.fullmatch(r"and 2\d\d more lines, which this page has on a screen", page.inner_text(".left-out"))
    page.reload()
    page.wait_for_selector("html[data-ready]")
    page.evaluate("addEventListener('beforeprint', () => { document.body.style.cssText = '' })")
    assert printed(page)[1], "a page that is not fitted is noticed"
    page.reload()
    page.wait_for_selector("html[data-ready]")


@needs_chromium
@pytest.mark.parametrize("more", [[], ["--virtual-time-budget=8000"]])
def test_chromium_prints_it_so(folder: Path, tmp_path: Path, more: list[str]) -> None:
    """Before the script runs, and after; on what chromium takes by itself, Letter."""
    words = [str(CHROMIUM), "--headless", "--no-sandbox", *more, f"--print-to-pdf={tmp_path / 'a.pdf'}"]
    subprocess.run([*words, (folder / "page.html").as_uri()], check=True, capture_output=True, timeout=120)
    assert len(re.findall(rb"/Type\s*/Page\b(?!s)", (tmp_path / "a.pdf").read_bytes())) == 1


@needs_chromium
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_everybody_can_read_it(page: Page, scheme: Any) -> None:
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_timeout(100)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.evaluate(Axe().axe_script)
    found = page.evaluate("axe.run({resultTypes: ['violations']}).then((results) => results.violations)")
    page.set_viewport_size({"width": 1280, "height": 800})
    assert [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")] == []


def test_the_first_screen_of_a_run_that_goes_on_has_its_causes_so_far(folder: Path, tmp_path: Path) -> None:
    """As fresh as a fifth of one core allows; in the end they are those of the report."""
    (tmp_path / "run").mkdir()
    shutil.copy(folder / "run" / "scenario.yaml", tmp_path / "run")
    with Reader(folder / "run" / FILE_NAME) as reader:
        header, events = reader.header, list(reader)
    told = finding.causes_of(folder / "run").to_json()
    middle = next(index for index, event in enumerate(events) if event.time_ns > 1_357_500_000_000)
    found, used = runs.Runs("leak", finds_causes=True), list[float]()

    def find() -> None:
        causes.follow(found)
        used.append(time.thread_time())

    with contextlib.closing(Writer(tmp_path / "run" / FILE_NAME, header)) as writer:
        found.begin(tmp_path / "run", "", 1500.0)
        threads = [threading.Thread(target=target, daemon=True) for target in (found.follow, find)]
        begun = time.monotonic()
        for thread in threads:
            thread.start()
        for event in events[:middle]:
            writer.append(*event)
        writer.flush()

        def until(holds: Callable[[dict[str, Any], bool], object]) -> dict[str, Any]:
            while time.monotonic() - begun < 120:
                text, is_last = found.page()
                page: dict[str, Any] = json.loads(text)
                if page["page"]["runs"] and holds(page, is_last):
                    return page
                time.sleep(0.05)
            raise AssertionError("it never came")

        page = until(lambda page, is_last: page["live"]["state"]["caused"] > 1357)
        first = page["firsts"]["0"]
        assert "What led to what <small>as of 22 min 37 s" in first
        assert "so far" in first
        assert "the cluster said" in first
        took = time.monotonic() - begun
        for event in events[middle:]:
            writer.append(*event)
    (tmp_path / "run" / "verdict.json").write_bytes((folder / "run" / "verdict.json").read_bytes())
    found.judged()
    found.end(runs.OVER, "over")
    page = until(lambda page, is_last: is_last)
    summary = page["page"]["runs"][0]["summary"]
    run = found.followed(0)
    assert run is not None
    assert run.causes == told
    assert [one["what"] for one in summary["chains"]] == [one["what"] for one in told["roots"]]
    assert summary["as_of"] == ""
    found.stop()
    for thread in threads:
        thread.join(10)
    print(f"{used[0]:.1f} s of CPU in {time.monotonic() - begun:.1f} s, {took:.1f} s to the middle")


def test_causes_leave_a_core_to_the_run(folder: Path) -> None:
    """Whatever the log holds: what they took is a fifth of the time that has passed."""
    found, used = runs.Runs("leak", finds_causes=True), list[float]()
    found.begin(folder / "run", "", 1500.0)

    def find() -> None:
        causes.follow(found)
        used.append(time.thread_time())

    thread = threading.Thread(target=find, daemon=True)
    begun = time.monotonic()
    thread.start()
    while time.monotonic() - begun < 3:
        found._asked = True
        time.sleep(0.02)
    found.stop()
    thread.join(20)
    found.follow()  # closes the log
    assert 0 < used[0] <= 0.25 * (time.monotonic() - begun)


def test_a_container_that_is_started_again_uses_memory_anew(folder: Path) -> None:
    data = folds.of_folder(folder / "run").data(run_folders.verdict(folder / "run"))
    killed = {data["nodes"]["marks"]["pod"][row] for row, what in enumerate(data["nodes"]["marks"]["what"])
              if data["strings"][what] == "oomKilled"}  # fmt: skip
    curves = [one["memory"] for one in data["nodes"]["usage"] if one["pod"] in killed]
    assert curves
    for memory in curves:
        falls = [(before, after) for before, after in itertools.pairwise(memory) if after < before / 2]
        assert len(falls) == 1
        assert falls[0][0] > 5 << 30
        assert falls[0][1] < 1 << 30


def test_the_story_tells_it_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["story", str(folder / "run"), "--json"]) == 0
    lines = json.loads(capsys.readouterr().out)["lines"]
    seen = [line for line in lines if line["kind"] == "observed"]
    assert [line["from_s"] for line in seen] == [1290, 1314]  # warnings alone
    assert [line["from_s"] for line in lines] == sorted(line["from_s"] for line in lines)


def test_what_was_observed_is_checked_where_it_stands(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "leak", tmp_path / "leak")
    (tmp_path / "leak" / "timeline.yaml").write_text("- {at: soon, reason: Failed, of: [Pod a]}\n")
    with pytest.raises(KemuError, match=r"timeline.yaml:1:8: .*\[0\].at: must be a number"):
        loader.load(tmp_path / "leak" / "scenario.yaml")


def test_a_file_that_is_no_comparison_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for given in (folder / "leak" / "scenario.yaml", folder / "absent"):
        words = ["--compare", str(given), "--out", str(folder / "no.html")]
        assert main.main(["report", str(folder / "run"), *words]) == 2
        assert f"{given}: " in capsys.readouterr().err


def test_remedies_are_called_by_their_files() -> None:
    data = {"variants": [{"with": name} for name in ("as it is", "a/limit.yaml", "b/limit.yaml", "a/x.yaml,b/y.yaml")]}
    assert list(remedies.names(data).values()) == ["as it is", "a/limit.yaml", "b/limit.yaml", "x + y"]


@pytest.mark.parametrize(
    ("given", "said"),
    [(8768171, "8.36 MiB"), (0, "0 B"), (1023, "1023 B"), (1 << 30, "1 GiB"), (1020 << 20, "1020 MiB")],
)
def test_sizes(given: int, said: str) -> None:
    assert people.size(given) == said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (0, "0 s"), (0.0042, "4.2 ms"), (0.51, "510 ms"), (12.34, "12.3 s"), (99.9, "99.9 s"), (100, "1 min 40 s"),
        (7500, "2 h 5 min"), (1e6, "277 h"),
    ],
)  # fmt: skip
def test_durations(given: float, said: str) -> None:
    assert people.duration(given) == said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            "low on memory. Threshold quantity: 100Mi, available: 94128692. Container a was using 720Mi",
            "low on memory. Threshold quantity: 100Mi, available: 89.8 MiB. Container a was using 720Mi",
        ),
        (
            "low on memory. Container main was using 1171875Ki, request is 1G",
            "low on memory. Container main was using 1.12 GiB, request is 1G",
        ),
        (
            "Node didn't have enough resource: memory, requested: 1073741824, used: 16106127360, capacity: 16642998272",
            "Node didn't have enough resource: memory, requested: 1 GiB, used: 15 GiB, capacity: 15.5 GiB",
        ),
        (
            "Node didn't have enough resource: cpu, requested: 100000, used: 100000, capacity: 100000",
            "Node didn't have enough resource: cpu, requested: 100000, used: 100000, capacity: 100000",
        ),
    ],
)
def test_messages_have_sizes_in_place_of_bytes(given: str, said: str) -> None:
    assert people.message(given) == said
