"""The HTML report in a browser: what a stranger must find, and what the file promises."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, Route, sync_playwright

from kemu.doors.cli import finds, main

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium (scripts/setup --system)")

VIEWS = (
    "overview", "story", "nodes", "pods/1", "waiting", "queues", "attempts", "preemptions", "watches", "checks",
    "events/152", "variants", "search/other-3",
)  # fmt: skip
SMALL_BYTES = 400_000
READY_MS = 3000
"""One second on a machine that does nothing else."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "race"
    assert main.main(["run", "seeds/multi-scheduler-race", "--out", str(folder), "--report", "--json"]) == 0
    return folder / "report.html"


@pytest.fixture(scope="module")
def page(report: Path) -> Iterator[Page]:
    """One browser for all tests; what the page asks for or complains of fails them."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        opened = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
        wrong: list[str] = []

        def refuse(route: Route) -> None:
            if route.request.url.partition("#")[0] == report.as_uri():
                route.continue_()
            else:
                wrong.append(route.request.url)
                route.abort()

        opened.route("**/*", refuse)
        opened.on("console", lambda message: wrong.append(message.text))
        opened.on("pageerror", lambda error: wrong.append(str(error)))
        opened.goto(report.as_uri())
        opened.wait_for_selector("html[data-ready]")
        yield opened
        browser.close()
    assert wrong == []


def shown(page: Page, address: str) -> str:
    """The text of a view."""
    page.evaluate(f"location.hash = '#/0/{address}'")
    page.wait_for_timeout(60)
    return page.inner_text("main")


def test_it_is_small_and_the_same_twice(report: Path, tmp_path: Path) -> None:
    assert report.stat().st_size <= SMALL_BYTES
    again = tmp_path / "again.html"
    assert main.main(["report", str(report.parent), "--out", str(again)]) == 0
    assert again.read_bytes() == report.read_bytes()


def test_a_copy_has_the_same_page(report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it is called the same; and nothing tells where it was."""
    pages = []
    for place in ("here", "there"):
        folder = tmp_path / place / "runs" / "race"
        shutil.copytree(report.parent, folder)
        monkeypatch.chdir(folder.parents[1])
        for given in (Path("runs/race"), folder):
            (folder / "report.html").unlink()
            assert main.main(["report", str(given)]) == 0
            pages.append((folder / "report.html").read_bytes())
        monkeypatch.setenv("PATH", "/nowhere")
    assert len(set(pages)) == 1
    (named,) = {str(finds.named(folder)) for folder in (Path("runs/race"), folder)}
    assert named == "runs/race"
    assert finds.named(report.parent) == Path("race")


def test_it_is_soon_interactive(page: Page) -> None:
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert page.evaluate("performance.now()") < READY_MS


def test_the_first_screen_needs_no_scrolling(page: Page) -> None:
    shown(page, "overview")
    assert page.evaluate("document.documentElement.scrollHeight") <= 800
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    lanes = page.locator(".space-time svg").first.text_content() or ""
    assert "LOST" in lanes
    assert "rejects important-0" in lanes


def test_the_picture_keeps_to_the_room_below_the_verdict(page: Page) -> None:
    shown(page, "overview")
    tall = page.locator(".space-time svg").first.bounding_box()
    assert tall is not None
    assert tall["y"] + tall["height"] <= 800


QUESTIONS = {
    "is it as expected?": ("overview", "As the scenario expects"),
    "who lost?": ("overview", "important-0 lost the race"),
    "who turned it away?": ("overview", "kubelet node-1 rejected it (OutOfcpu)"),
    "why?": ("overview", "scheduler-a still counted 10 CPUs free on node-1"),
    "which pod waited longest, and how long?": ("overview", "important-0 waited 6.8 s"),
    "which node was short of what, when?": ("overview", "node-1 was short of 10 cpu (10 wanted, 0 free) 5.898 s"),
    "what was injected?": ("overview", "No fault was injected"),
    "how do I make it again?": ("overview", "replay"),
    "who pushed out whom?": ("preemptions", "important-0 (priority high (1000))\tvictim (priority low (50))"),
    "what would have had to change for important-0?": ("pods/1", "Why it had to wait: node-1 was short of 10 cpu"),
    "which check looked at what?": ("checks", "4 pods ran on 1 node"),
    "in which variant is there no race?": ("variants", "cooperate=on"),
    "who heard late, and how late?": ("watches", "heard of a change"),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_questions_are_answered_on_the_first_screen_or_one_click_away(page: Page, question: str) -> None:
    view, answer = QUESTIONS[question]
    assert answer in shown(page, view)


def test_sentences_lead_to_their_events(page: Page) -> None:
    shown(page, "overview")
    page.get_by_role("link", name="Kubelet node-1 rejected important-0 (OutOfcpu).").first.click()
    page.wait_for_selector("tr.marked")
    assert "kubelet.admit" in page.inner_text("tr.marked")


def test_search_finds_a_pod_by_keyboard(page: Page) -> None:
    shown(page, "overview")
    page.keyboard.press("Home")
    page.get_by_role("searchbox", name="Search pods, nodes and events").focus()
    page.keyboard.type("other-3")
    page.keyboard.press("Enter")
    page.wait_for_timeout(60)
    assert "1 pod\n" in page.inner_text("main")


@pytest.mark.parametrize(("scheme", "views"), [("light", VIEWS), ("dark", ("overview", "pods/1", "checks"))])
def test_no_view_has_a_serious_accessibility_fault(
    page: Page, scheme: Literal["light", "dark"], views: Sequence[str]
) -> None:
    page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    page.evaluate(Axe().axe_script)
    for view in views:
        shown(page, view)
        found = page.evaluate("axe.run({resultTypes: ['violations']}).then((results) => results.violations)")
        serious = [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")]
        assert serious == [], f"{view}: {scheme}"
