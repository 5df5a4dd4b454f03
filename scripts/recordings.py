"""A recording of a terminal as one SVG that moves by itself: no script, no fonts, the same bytes from the same answers.

All lines are one long column that moves up behind a window; a cover over each command is drawn back as it is typed. Who
asks for less motion sees the end. Used by scripts/pictures.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

ROWS = 30
"""Of the window."""
LETTER_S, ANSWER_S, LINE_S = 0.03, 0.5, 0.12
"""Between two letters that are typed, before an answer, and between two of its lines: slow enough to be followed."""
LINE_PX, LETTER_PX = 24.4, 12.2
"""Of rich's pictures."""
EDGE_PX = 14

# good first: the same recording as an asciinema cast (.cast), for players that can pause it
_FORMAT = """\
<svg class="rich-terminal" viewBox="0 0 {width} @HEIGHT" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: "DejaVu Sans Mono", Menlo, Consolas, monospace; font-size: {char_height}px;
  line-height: {line_height}px; font-variant-east-asian: full-width; }}
{styles}
.screen {{ transform: translateY(@LAST); animation: screen @SECONDS step-end infinite; }}
@keyframes screen {{
@SCROLL
}}
@TYPING
@media (prefers-reduced-motion: reduce) {{ .screen, .untyped {{ animation: none !important; }} }}
</style>
<defs>
<clipPath id="window"><rect x="0" y="0" width="{terminal_width}" height="@WINDOW"/></clipPath>
{lines}
</defs>
<rect fill="@GROUND" width="{width}" height="@HEIGHT" rx="8"/>
<g transform="translate(@EDGE, @EDGE)" clip-path="url(#window)">
<g class="screen">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
@COVERS
</g>
</g>
</svg>
"""


@dataclass(frozen=True)
class Scene:
    """A command: typed, answered, read."""

    command: str
    read_s: float
    """How long the end of its answer stays."""
    wanted: int = 0
    """Its exit code."""


@dataclass(frozen=True)
class _Typed:
    line: int
    letters: int
    begin_s: float
    end_s: float


@dataclass
class Recording:
    width: int
    """Letters in a line."""
    lines: list[str] = field(default_factory=list)
    _now_s: float = 0.8
    _shown: list[float] = field(default_factory=list)
    """When each line comes."""
    _typed: list[_Typed] = field(default_factory=list)

    def add(self, scene: Scene, answer: Iterable[str]) -> None:
        """``answer``: lines, with colours, none wider than the terminal."""
        text = f"$ {scene.command}"
        for begin in range(0, len(text), self.width):
            part = text[begin : begin + self.width]
            end_s = self._now_s + len(part) * LETTER_S
            self._typed.append(_Typed(len(self.lines), len(part), self._now_s, end_s))
            self._line(part, len(part) * LETTER_S)
        self._now_s += ANSWER_S
        for line in answer:
            self._line(line, LINE_S)
        self._line("", scene.read_s)

    def _line(self, text: str, for_s: float) -> None:
        self.lines.append(text)
        self._shown.append(self._now_s)
        self._now_s += for_s

    def code_format(self, ground: str) -> str:
        """What rich fills in. ``ground``: the colour of the background."""
        steps = [(0.0, 0), *((at, count) for count, at in enumerate(self._shown, 1))]
        scroll = "\n".join(f"{self._share(at)} {{ transform: translateY({_up(count)}); }}" for at, count in steps)
        typing, covers = [], []
        for one in self._typed:
            across = f"translateX({one.letters * LETTER_PX:.1f}px)"
            typing.append(
                f"@keyframes typed-{one.line} {{ 0%, {self._share(one.begin_s)} {{ transform: none;"
                f" animation-timing-function: steps({one.letters}); }}"
                f" {self._share(one.end_s)}, 100% {{ transform: {across}; }} }}"
            )
            covers.append(
                f'<g clip-path="url(#{{unique_id}}-line-{one.line})"><rect class="untyped" fill="{ground}" x="0"'
                f' y="{one.line * LINE_PX:.1f}" width="{one.letters * LETTER_PX:.1f}" height="{LINE_PX + 2}"'
                f' style="transform: {across}; animation: typed-{one.line} {self._now_s:.2f}s infinite"/></g>'
            )
        values = {
            "@HEIGHT": f"{ROWS * LINE_PX + 2 * EDGE_PX:.1f}",
            "@WINDOW": f"{ROWS * LINE_PX:.1f}",
            "@LAST": _up(len(self.lines)),
            "@SECONDS": f"{self._now_s:.2f}s",
            "@SCROLL": scroll.replace("{", "{{").replace("}", "}}"),
            "@TYPING": "\n".join(typing).replace("{", "{{").replace("}", "}}"),
            "@COVERS": "\n".join(covers),
            "@GROUND": ground,
            "@EDGE": str(EDGE_PX),
        }
        made = _FORMAT
        for key, value in values.items():
            made = made.replace(key, value)
        return made

    def _share(self, at_s: float) -> str:
        return f"{at_s / self._now_s:.3%}"


def _up(count: int) -> str:
    """Where the column stands when it has so many lines: the last one at the bottom of the window."""
    return f"{(ROWS - count) * LINE_PX:.1f}px"
