"""Run the model over all 90 rows and kemu over some of them, print both beside the published figures, write the page.

python -m experiments.published.omega --data DIR                 # the model, one minute; kemu, about ten
python -m experiments.published.omega --data DIR --full          # kemu over all rows at full length: hours
python -m experiments.published.omega --data DIR --full --row mode --seed 1
python -m experiments.published.omega --check                    # the page and the stored results, no run
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from concurrent import futures
from multiprocessing import get_context
from pathlib import Path

from experiments.published.omega import configurations, inputs, pages, plans, results


def main() -> int:
    options = _options()
    if options.check:
        return _complain([*pages.violations(*_stored(options.results)), *pages.complaints()])
    try:
        data = inputs.find(options.data)
    except inputs.InputsMissing as missing:
        print(missing, file=sys.stderr)
        return 2
    complaints = list(inputs.differing_lists(data))
    if not options.kemu_only:
        published = configurations.published(data, inputs.EXPECTED)
        spread = configurations.published(data, inputs.SPREAD)
        model = [results.of_model(row, published[row.key], spread[row.key]) for row in configurations.all_rows()]
        results.write(results.MODEL, model, options.results)
    stored = {_run_of(row) for row in results.read(results.KEMU, options.results)} if options.missing else set()
    runs = [
        run
        for run in (plans.full() if options.full else plans.usual())
        if (not options.row or run[0].experiment in options.row)
        and (not options.seed or run[0].seed in options.seed)
        and (run[0].key, run[1], run[2]) not in stored
    ]
    for row in _play(runs, options.jobs):
        print(pages.line(row), flush=True)
        results.write(results.KEMU, [*results.read(results.KEMU, options.results), row], options.results)
    model_rows, kemu_rows = _stored(options.results)
    tables = (pages.by_service_time, pages.by_mode, pages.by_schedulers, pages.exactness)
    for table in tables:
        print("\n".join(["", *table(model_rows)]))
    print("\n".join(["", *pages.on_kemu(model_rows, kemu_rows), "", *pages.curve(kemu_rows)]))
    if options.results == results.FOLDER:
        pages.write()
    return _complain([*complaints, *pages.violations(model_rows, kemu_rows)])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.published.omega",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, action="append", default=[], metavar="DIR", help="where the files are")
    parser.add_argument("--full", action="store_true", help="kemu over the rows at full length, 4 to 8 minutes each")
    parser.add_argument("--kemu-only", action="store_true", help="not the model")
    parser.add_argument("--row", action="append", choices=list(plans.PREFIX_S), help="only these experiments")
    parser.add_argument("--seed", type=int, action="append", choices=[1, 2, 3])
    parser.add_argument("--missing", action="store_true", help="only runs that have no stored result")
    parser.add_argument("--jobs", type=int, default=1, help="so many processes")
    parser.add_argument("--results", type=Path, default=results.FOLDER, help="where the results are kept")
    parser.add_argument("--check", action="store_true", help="whether the page says what the stored results say")
    return parser.parse_args()


def _stored(folder: Path) -> tuple[list[results.Row], list[results.Row]]:
    return results.read(results.MODEL, folder), results.read(results.KEMU, folder)


def _run_of(row: results.Row) -> tuple[configurations.Key, float, str]:
    return results.key_of(row), float(row["length_s"]), row["variant"]


def _play(runs: Iterable[plans.Run], jobs: int) -> Iterator[results.Row]:
    """The results as they come; each run in a process of its own."""
    with futures.ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        for done in futures.as_completed([pool.submit(results.of_kemu, *run) for run in runs]):
            yield done.result()


def _complain(complaints: Iterable[str]) -> int:
    found = list(complaints)
    for complaint in found:
        print(complaint, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
