"""Run the policies over the published seeds, print each figure beside the published one, and write the page.

python -m experiments.published.fgd --data DIR                      # the default workload: 60 runs, half a minute each
python -m experiments.published.fgd --data DIR --policy 06-FGD --seed 42
python -m experiments.published.fgd --data DIR --workload gpuspec33 --seed 42   # another list of pods
python -m experiments.published.fgd --check                         # the page and the stored results, no run
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from concurrent import futures
from multiprocessing import get_context
from pathlib import Path

from experiments.published.fgd import clusters, inputs, pages, results, runs


def main() -> int:
    options = _options()
    if options.check:
        complaints = [*results.complaints(results.read()), *pages.complaints()]
        for complaint in complaints:
            print(complaint, file=sys.stderr)
        return 1 if complaints else 0
    workloads = options.workload or [inputs.DEFAULT]
    try:
        for workload in workloads:
            inputs.find(options.data, workload)
    except inputs.InputsMissing as missing:
        print(missing, file=sys.stderr)
        return 2
    stored = {one.run: one for one in results.read(options.results)}
    cells = [
        (workload, policy, seed)
        for seed in options.seed or inputs.SEEDS
        for workload in workloads
        for policy in options.policy or clusters.POLICIES
    ]
    if options.missing:
        cells = [cell for cell in cells if cell not in stored]
    failed = False
    for result in _play(cells, options.data, options.jobs):
        if isinstance(result, str):
            print(result, file=sys.stderr, flush=True)
            failed = True
            continue
        print(pages.line(result), flush=True)
        stored[result.run] = result
        results.write(stored.values(), options.results)
    found = results.read(options.results)
    print()
    print("\n".join(pages.summary(found)))
    if options.results == results.FILE:
        pages.write(found)
    complaints = results.complaints(found)
    print("\n".join(complaints))
    return 1 if complaints or failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m experiments.published.fgd",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, action="append", default=[], metavar="DIR", help="where the files are")
    parser.add_argument(
        "--workload", action="append", choices=inputs.WORKLOADS, help=f"the list of pods; default: {inputs.DEFAULT}"
    )
    parser.add_argument("--policy", action="append", choices=list(clusters.POLICIES))
    parser.add_argument("--seed", type=int, action="append", choices=inputs.SEEDS, metavar="42..51")
    parser.add_argument("--jobs", type=int, default=1, help="so many processes")
    parser.add_argument("--missing", action="store_true", help="only runs that have no stored result")
    parser.add_argument("--results", type=Path, default=results.FILE, help="where the results are kept")
    parser.add_argument("--check", action="store_true", help="whether the page says what the stored results say")
    return parser.parse_args()


def _play(cells: Iterable[tuple[str, str, int]], data: list[Path], jobs: int) -> Iterator[results.Result | str]:
    """The results as they come; a text for a run that failed."""
    context = get_context("spawn")
    with futures.ProcessPoolExecutor(jobs, mp_context=context, max_tasks_per_child=1) as pool:
        asked = {pool.submit(results.make, *cell, data): cell for cell in cells}
        for done in futures.as_completed(asked):
            workload, policy, seed = asked[done]
            try:
                yield done.result()
            except runs.RunFailed as failure:
                yield f"{workload}, {policy}, seed {seed}: {failure}"


if __name__ == "__main__":
    sys.exit(main())
