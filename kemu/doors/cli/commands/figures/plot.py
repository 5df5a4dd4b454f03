"""``kemu plot``: pictures of the results of a sweep, a run or a matrix."""

from __future__ import annotations

import argparse
from pathlib import Path

from kemu.doors.cli import exits

KINDS = ("waiting", "starvation", "conflicts", "pareto", "occupancy")


def add_to(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "plot",
        help="draw the results of a sweep, a run or a matrix: waiting, starvation, conflicts, fronts, occupancy",
        description="Draw pictures of results, from their tables alone. Without KIND, all that these results have.",
    )
    parser.add_argument("folder", type=Path, help="of kemu sweep or kemu run, or a Parquet file of results")
    parser.add_argument("kind", nargs="*", metavar="KIND", help=f"{', '.join(KINDS)}; default: all")
    parser.add_argument("--format", choices=("svg", "pdf", "png"), default="svg", help="default: svg")
    parser.add_argument("--theme", choices=("light", "dark"), default="light", help="default: light")
    parser.add_argument("--out", type=Path, metavar="DIR", help="default: plots in the folder")
    parser.add_argument("--x", default="", metavar="COLUMN", help="the number that varies, for curves")
    parser.add_argument(
        "--metric", default="waiting.p99_s", metavar="NAME", help="of the starvation curve; default: waiting.p99_s"
    )
    parser.add_argument("--priority", type=int, metavar="N", help="the starvation curve of these pods only")
    parser.add_argument(
        "--pareto", nargs=2, metavar="METRIC", default=("utilisation.cpu", "waiting.p99_s"), help="two metrics"
    )
    page = parser.add_argument_group("for papers")
    page.add_argument("--size", default="", metavar="W[xH]", help="of the whole picture: 84mm, 3.3in, 84mmx60mm")
    page.add_argument("--font", default="", metavar="NAME", help="default: Liberation Sans, which comes along")
    page.add_argument("--font-size", type=_points, default=12.0, metavar="PT", help="of labels, in points; default: 12")
    page.add_argument("--title", metavar="TEXT", help="in place of the picture's own; '' for none")
    page.add_argument("--log-x", action="store_true", help="a logarithmic axis, of curves and fronts")
    page.add_argument("--log-y", action="store_true", help="the same upwards")
    page.add_argument(
        "--name",
        nargs=2,
        action="append",
        default=[],
        metavar=("OLD", "NEW"),
        help="another text in the legend, a panel or the title of an axis; may be given again",
    )
    parser.set_defaults(command=command)


def _points(text: str) -> float:
    points = float(text)
    if not 3 <= points <= 72:
        raise argparse.ArgumentTypeError(f"from 3 to 72 points: {text}")
    return points


def all_of(folder: Path) -> list[Path]:
    """Draw all plots of the results in a folder, and return the files."""
    from kemu.lab.sweep.plots import pictures

    found = pictures.draw(folder, folder / pictures.FOLDER, list(pictures.KINDS))
    return [picture.file for picture in found if picture.file is not None]


def command(options: argparse.Namespace) -> int:
    from kemu.errors import KemuError
    from kemu.lab.sweep.plots import pages, pictures, styles

    unknown = [kind for kind in options.kind if kind not in pictures.KINDS]
    if unknown:
        raise KemuError(f"{unknown[0]}: no picture of that name; there are {', '.join(pictures.KINDS)}")
    manner = pictures.Manner(
        options.format,
        options.theme,
        options.x,
        options.metric,
        options.priority,
        tuple(options.pareto),
        pages.size_of(options.size) if options.size else None,
        options.font,
        options.font_size,
        styles.Logarithmic(options.log_x, options.log_y),
        options.title,
        dict(options.name),
    )
    out = options.out or (options.folder.parent if options.folder.is_file() else options.folder) / pictures.FOLDER
    drawn = 0
    for picture in pictures.draw(options.folder, out, options.kind or list(pictures.KINDS), manner):
        drawn += picture.file is not None
        print(picture.file if picture.file is not None else f"no {picture.kind}: {picture.why}")
    return exits.HOLDS if drawn else exits.UNKNOWN
