"""The HTML around the data: the template, the compressed script and data, and the content security policy.

The script and the data stand in the page as gzip in base64. A loader of a few lines decompresses the script and puts
it into a script element, whose hash the policy names: nothing else runs, and nothing is requested.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup

from kemu.emulated.objects.plain import Json
from kemu.lab.tell import people

_LONG_MICROS = 99_950_000
"""From here on minutes say more than seconds."""
_FILES = "kemu.lab.tell.page"


def render(page: Mapping[str, Any], *, live: bool = False) -> str:
    """``page``: ``title description runs matrix``, JSON. ``live``: its script fetches the runs from where it comes."""
    script, style, loader = _file("bundle/page.js"), _file("bundle/page.css"), _file("source/loader.js").strip()
    inline = json.loads(_file("bundle/styles.json"))
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src {_hash(loader)} {_hash(script)}",
            f"style-src {' '.join(_hash(one) for one in (style, *inline))}",
            "img-src data:",
            *(["connect-src 'self'"] if live else []),
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    return _template("page.html.jinja").render(
        page=page,
        first_screen=lambda run, index: Markup(first_screen(run, index, page)),
        policy=Markup(policy),
        style=Markup(style),
        loader=Markup(loader),
        script=Markup(packed_text(script)),
        data=Markup(packed({**page, "live": True} if live else page)),
    )


def first_screen(run: Mapping[str, Any], index: int, page: Mapping[str, Any]) -> str:
    """The overview of a run as static HTML. ``index``: of the run, to which its links lead."""
    of_many = page["matrix"] or (page if "search" in page or "sweep" in page else {})
    whole = of_many.get("headline", "")
    return _template("first.html.jinja").render(
        run=run, index=index, whole=whole, page={"remedies": page.get("remedies")}
    )


def packed(data: Json) -> str:
    """As it stands in the page."""
    return packed_text(json.dumps(data, ensure_ascii=False, separators=(",", ":")))


def packed_text(text: str) -> str:
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _file(name: str) -> str:
    return resources.files(_FILES).joinpath(name).read_text(encoding="utf-8")


@cache
def _environment() -> jinja2.Environment:
    undefined = jinja2.StrictUndefined
    environment = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=undefined)
    environment.filters["seconds"] = lambda micros: (
        people.duration(micros / 1e6) if micros >= _LONG_MICROS else f"{micros / 1e6:.3f} s"
    )
    return environment


@cache
def _template(name: str) -> jinja2.Template:
    return _environment().from_string(_file(name))
