"""The documents as a site (scripts/site): built strictly, read from a folder, without a network."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    subprocess.run([ROOT / "scripts" / "site", folder], check=True)  # as "mkdocs.yml" says
    return folder


@pytest.fixture
def page() -> Iterator[Page]:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser.new_page()
        browser.close()


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium: apt-get install chromium")
def test_the_search_works_from_a_folder_and_asks_nobody(site: Path, page: Page) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / "index.html").as_uri())
    box = page.locator("input.md-search__input")
    box.click()
    box.press_sequentially("Parquet")
    page.locator(".md-search-result__link").first.wait_for(state="attached", timeout=30_000)
    assert "results.html" in " ".join(
        link.get_attribute("href") or "" for link in page.locator(".md-search-result__link").all()
    )
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


def test_files_that_documents_mention_have_pages(site: Path) -> None:
    assert 'href="repository/kemu/runtime/env.py.html"' in (site / "architecture.html").read_text()
    assert "Two schedulers, one node" in (site / "repository" / "kemu" / "runtime" / "env.py.html").read_text()


def test_a_file_that_a_reader_writes_is_shown_with_its_name(site: Path) -> None:
    assert '<span class="filename">shop.yaml</span>' in (site / "tutorial.html").read_text()
