"""The tables: own figures beside the published ones, on the terminal and in docs/published-omega.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from experiments.published.omega import clusters, figures, jobs, plans, results, tolerances
from experiments.published.omega.configurations import Key
from experiments.published.omega.results import PUBLISHED_SUFFIX, Row

PAGE = Path(__file__).resolve().parents[3] / "docs" / "published-omega.md"
_MARKS = ("<!-- made by python -m experiments.published.omega -->", "<!-- end -->")

_DIGITS = {"conflict_fraction": 3, "busyness": 3, "mean_wait": 2, "utilisation": 3}


def write() -> None:
    PAGE.write_text(_page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def complaints() -> list[str]:
    text = PAGE.read_text(encoding="utf-8")
    if text == _page(text):
        return []
    return [f"{PAGE.name} does not say what the stored results say: python -m experiments.published.omega writes it"]


def _page(text: str) -> str:
    """The page with its tables made anew."""
    model, kemu = results.read(results.MODEL), results.read(results.KEMU)
    tables = [
        by_service_time(model),
        by_mode(model),
        by_schedulers(model),
        exactness(model),
        on_kemu(model, kemu),
        curve(kemu),
    ]
    parts = text.split(_MARKS[0])
    rest = [part.split(_MARKS[1], 1)[1] for part in parts[1:]]
    made = parts[0]
    for table, after in zip(tables, rest, strict=True):
        made += "\n".join([_MARKS[0], *table, _MARKS[1]]) + after
    return made


# --- the model, at full length: means of the three seeds --------------------------------------------------------------


def by_service_time(rows: Sequence[Row]) -> list[str]:
    columns = [(f"{name}, {mean} s", column, mean) for name, column in _SERVICE for mean in (100, 140)]
    chosen = [row for row in rows if row["experiment"] == "tjob_service"]
    return _means("t_job(service)", columns, chosen, lambda row: f"{float(row['parameter']):g} s")


def by_mode(rows: Sequence[Row]) -> list[str]:
    columns = [(f"{name}, {mean} s", column, mean) for name, column in _SERVICE for mean in (100, 140)]
    chosen = [row for row in rows if row["experiment"] == "mode"]
    return _means("detection, mode", columns, chosen, lambda row: f"{row['detection']}, {row['transaction_mode']}")


def by_schedulers(rows: Sequence[Row]) -> list[str]:
    columns = [(f"{name}, {mean} s", column, mean) for name, column in _BATCH for mean in (10, 14)]
    chosen = [row for row in rows if row["experiment"] == "batch_schedulers"]
    return _means("batch schedulers", columns, chosen, lambda row: row["parameter"])


_SERVICE = (
    ("conflicts", "conflict_fraction_service"),
    ("busyness", "busyness_service"),
    ("wait in s", "mean_wait_service_s"),
)
_BATCH = (
    ("conflicts", "conflict_fraction_batch"),
    ("busyness of each", "busyness_batch"),
    ("wait in s", "mean_wait_batch_s"),
)


def _means(
    first: str, columns: Sequence[tuple[str, str, int]], rows: Sequence[Row], name: Callable[[Row], str]
) -> list[str]:
    """Means over the seeds; columns have a title, a figure and the list."""
    lines = [
        "| " + " | ".join([first, *(title for title, _, _ in columns)]) + " |",
        "| --- " * (len(columns) + 1) + "|",
    ]
    for group in dict.fromkeys(name(row) for row in rows):
        cells = []
        for _, column, mean in columns:
            chosen = [row for row in rows if name(row) == group and int(row["duration_mean"]) == mean]
            own, published = (
                sum(float(row[column + suffix]) for row in chosen) / len(chosen) for suffix in ("", PUBLISHED_SUFFIX)
            )
            cells.append(_beside(column, own, published))
        lines.append(f"| {group} | " + " | ".join(cells) + " |")
    return lines


def _beside(column: str, own: float, other: float) -> str:
    digits = next(count for prefix, count in _DIGITS.items() if column.startswith(prefix))
    distance = round(own - other, digits) + 0.0  # no minus zero
    return f"{own:.{digits}f}, {other:.{digits}f} ({distance:+.{digits}f})"


def exactness(rows: Sequence[Row]) -> list[str]:
    differing = [(row, name) for row in rows for name in figures.COUNTS if row[name] != row[name + PUBLISHED_SUFFIX]]
    whole = len(rows) * len(figures.COUNTS)
    lines = [f"Of {whole:,} counts in {len(rows)} rows, {len(differing)} differ from the published ones."]
    lines += [f"* {results.key_of(row)}: {name} {row[name]}, {row[name + PUBLISHED_SUFFIX]}" for row, name in differing]
    return lines


# --- kemu ------------------------------------------------------------------------------------------------------------


def is_full(row: Row) -> bool:
    return float(row["length_s"]) == jobs.WORKLOADS[int(row["duration_mean"])].length_s


def on_kemu(model: Sequence[Row], rows: Sequence[Row]) -> list[str]:
    titles = (
        *("configuration", "list", "length", "pods", "transactions, equal ones", "conflicts", "busyness"),
        *("wait in s", "utilisation", "CPU for a pod"),
    )
    lines = ["| " + " | ".join(titles) + " |", "| --- " * len(titles) + "|"]
    by_key = {results.key_of(row): row for row in model}
    for row in rows:
        if row["variant"]:
            continue
        name = jobs.BATCH if row["experiment"] == "batch_schedulers" else jobs.SERVICE
        other, suffix = (by_key[results.key_of(row)], PUBLISHED_SUFFIX) if is_full(row) else (row, "_model")
        cells = [
            _beside(column, float(row[column]), float(other[column + suffix]))
            for column in (f"conflict_fraction_{name}", f"busyness_{name}", f"mean_wait_{name}_s", "utilisation")
        ]
        length = f"**{_duration(row)}**" if is_full(row) else _duration(row)
        cpu_ms = 1000 * float(row["cpu_s"]) / int(row["pods"])
        lines.append(
            f"| {_configuration(row)} | {row['duration_mean']} s, seed {row['seed']} | {length} | {int(row['pods']):,} "
            f"| {int(row['transactions']):,}, {int(row['transactions_equal']):,} | "
            + " | ".join(cells)
            + f" | {cpu_ms:.1f} ms |"
        )
    return lines


def _configuration(row: Row) -> str:
    if row["experiment"] == "batch_schedulers":
        return f"{row['parameter']} batch schedulers"
    service = f"t_job(service) {float(row['parameter']):g} s"
    return f"{service}, {row['detection']}, {row['transaction_mode']}" if row["experiment"] == "mode" else service


def _duration(row: Row) -> str:
    seconds = float(row["length_s"])
    return f"{seconds / 3600:g} h" if seconds >= 3600 else f"{seconds / 60:g} min"


def curve(rows: Sequence[Row]) -> list[str]:
    """Conflicts over the number of schedulers: by transaction, and by pod."""
    lines = ["| batch schedulers | " + " | ".join(_TITLES) + " |", "| --- " * (len(_TITLES) + 1) + "|"]
    for parameter in plans.CURVE:
        cells = []
        for variant in clusters.VARIANTS:
            found = [
                row
                for row in rows
                if (row["variant"], row["experiment"], row["parameter"]) == (variant, "batch_schedulers", parameter)
                and float(row["length_s"]) == plans.CURVE_S
            ]
            cells.append(_cell(found[0]) if found else "")
        if any(cells):
            lines.append(f"| {parameter} | " + " | ".join(cells) + " |")
    return lines


_TITLES = tuple(variant or "API server refuses" for variant in clusters.VARIANTS)


def _cell(row: Row) -> str:
    refused, placed = int(row["tasks_conflicted_batch"]), int(row["tasks_placed_batch"])
    by_pod = f"{refused / placed:.3f} ({refused:,} of {placed:,})"
    if row["variant"] == clusters.KUBE_SCHEDULER:
        return by_pod
    return f"{float(row['conflict_fraction_batch']):.3f}; {by_pod}"


# --- what must hold --------------------------------------------------------------------------------------------------


def violations(model: Sequence[Row], kemu: Sequence[Row]) -> Iterator[str]:
    """Of the published counts and tolerances, and of what must hold without any."""
    by_key: dict[Key, Row] = {results.key_of(row): row for row in model}
    for row in model:
        for name in figures.COUNTS:
            if row[name] != row[name + PUBLISHED_SUFFIX]:
                yield f"{results.key_of(row)}: {name} is {row[name]}, not {row[name + PUBLISHED_SUFFIX]}"
    for row in kemu:
        what = f"{results.key_of(row)}, {_duration(row)}, {row['variant']}"
        if int(row["most_on_a_node"]) > 4:
            yield f"{what}: {row['most_on_a_node']} pods ran on one node"
        if row["variant"] in ("", clusters.KUBELETS) and row["transactions_equal"] != row["transactions"]:
            yield f"{what}: only {row['transactions_equal']} of {row['transactions']} transactions are the model's"
        if not row["variant"] and is_full(row):
            for complaint in tolerances.complaints(row, by_key[results.key_of(row)]):
                yield f"{what}: {complaint}"


def line(row: Row) -> str:
    """Of one run on kemu, for the terminal."""
    variant = f" [{row['variant']}]" if row["variant"] else ""
    return (
        f"{_configuration(row)}{variant}, {row['duration_mean']} s, seed {row['seed']}, {_duration(row)}: "
        f"{row['transactions_equal']} of {row['transactions']} transactions equal, {row['pods_rejected']} pods "
        f"rejected, {row['cpu_s']} s of CPU"
    )
