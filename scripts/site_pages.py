"""What MkDocs has to know of kemu's documents: its map is the navigation, and files outside docs/ become pages.

A hook of mkdocs.yml. docs/README.md is the one list of all pages; museum pages stand below the museum's own list.
"""

from __future__ import annotations

import posixpath
import re
import shutil
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
OUTSIDE = "repository"
"""Folder of the site for files of the repository that documents link to."""
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^(\s*```)(\w+) ([\w./-]+)$", re.MULTILINE)
"""Of a file that a reader writes: `` ```yaml shop.yaml``."""
_WORKER = "https://unpkg.com/iframe-worker/shim"
_UNSEARCHED = "---\nsearch: {exclude: true}\n---\n\n"
_MUSEUM = "museum/README.md"
_LANGUAGES = {".py": "python", ".yaml": "yaml", ".yml": "yaml", ".toml": "toml", ".proto": "proto", ".sh": "bash"}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The navigation: the doors of the map, and what is behind each."""
    doors: list[Any] = ["README.md"]
    for line in (ROOT / "docs" / "README.md").read_text().splitlines():
        if line.startswith("## "):
            doors.append({line.removeprefix("## "): []})
        elif line.startswith("* "):
            title, target = _LINK.findall(line)[0]
            (behind,) = doors[-1].values()
            behind.append({title: [target, *_pieces()]} if target == _MUSEUM else {title.replace("`", ""): target})
    config["nav"] = doors
    return config


def _pieces() -> list[str]:
    return [f"museum/{each.name}" for each in sorted((ROOT / "docs" / "museum").glob("[0-9]*.md"))]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each file and folder outside docs/ that a document links to."""
    for page in [each for each in files if each.is_documentation_page()]:
        for _, target in _LINK.findall(Path(page.abs_src_path or "").read_text()):
            path = _outside(page.src_uri, target)
            if path is not None and files.get_file_from_path(_page(path)) is None:
                files.append(File.generated(config, _page(path), content=_shown(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links that leave docs/ to these pages."""

    def led(match: re.Match[str]) -> str:
        path = _outside(page.file.src_uri, match[2])
        if path is None:
            return match[0]
        here = posixpath.dirname(page.file.src_uri)
        return f"[{match[1]}]({posixpath.relpath(_page(path), here or '.')})"

    return _LINK.sub(led, _FENCE.sub(r'\1\2 title="\3"', markdown))


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Take the search's worker from the site: a reader may have no network."""
    return output.replace(_WORKER, posixpath.relpath("assets/worker.js", posixpath.dirname(page.file.dest_uri) or "."))


def on_post_build(config: MkDocsConfig) -> None:
    shutil.copy(ROOT / "scripts" / "site_worker.js", Path(config["site_dir"]) / "assets" / "worker.js")


def _outside(page: str, target: str) -> str | None:
    """The path in the repository that a link of a page names, if it is outside docs/. Raises FileNotFoundError."""
    if page.startswith(f"{OUTSIDE}/") or "://" in target or target.startswith("#"):
        return None
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), target.partition("#")[0]))
    if path.startswith("docs/") or path == "docs":
        return None
    if not (ROOT / path).exists():
        raise FileNotFoundError(f"docs/{page} links to {path}, which does not exist")
    return path


def _page(path: str) -> str:
    return f"{OUTSIDE}/{path}.md"


def _shown(path: str) -> str:
    """A text as a code block, other files by their size, documents by their path alone, folders as lists of files."""
    found = ROOT / path
    if found.is_dir():
        names = sorted(
            each.name + "/" * each.is_dir() for each in found.iterdir() if not each.name.startswith((".", "__"))
        )
        return f"{_UNSEARCHED}# {path}/\n\n" + "\n".join(f"* `{name}`" for name in names) + "\n"
    fence = "`" * 8
    try:
        text = found.read_text()
    except UnicodeDecodeError:
        return f"{_UNSEARCHED}# {path}\n\nA file of {found.stat().st_size:,} bytes, in the repository.\n"
    return f"{_UNSEARCHED}# {path}\n\n{fence} {_LANGUAGES.get(found.suffix, 'text')}\n{text}\n{fence}\n"
