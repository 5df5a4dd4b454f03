"""``python -m tests.gateway.replays``: see the package."""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from pathlib import Path

from tests.gateway.replays import recordings, replays


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.gateway.replays")
    parser.add_argument("--client", help="only these differences")
    parser.add_argument("--step", help="only differences of steps with this text")
    parser.add_argument("--messages", action="store_true", help="texts of refusals that differ, too")
    parser.add_argument("--troubles", action="store_true", help="states that could not be brought about, too")
    parser.add_argument("--first", type=int, default=None, help="replay only so many records")
    parser.add_argument("--recordings", type=Path, default=recordings.SHARED, help="default: %(default)s")
    given = parser.parse_args()
    outcomes = replays.run(recordings.load(given.recordings)[: given.first])
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    left_out: Counter[str] = Counter()
    for outcome in outcomes:
        record = outcome.record
        if outcome.left_out:
            left_out[outcome.left_out] += 1
            counts[record.client]["left out"] += 1
            continue
        counts[record.client]["compared"] += 1
        counts[record.client]["alike"] += not outcome.differences
        if (given.client or record.client) != record.client or (given.step or "") not in record.step:
            continue
        if outcome.differences:
            print(f"{record.client} | {record.step} | #{record.number} {record.title()[:200]}")
            for difference in outcome.differences[:12]:
                print(f"      {difference[:400]}")
        if given.troubles and outcome.differences:
            for trouble in outcome.troubles:
                print(f"      (state: {trouble})")
        if given.messages and outcome.message:
            print(f"{record.client} | {record.step} | #{record.number} {record.title()[:120]}")
            print(f"      - {outcome.message[0][:500]}\n      + {outcome.message[1][:500]}")
    compared = sum(count["compared"] for count in counts.values())
    alike = sum(count["alike"] for count in counts.values())
    for client, count in counts.items():
        print(f"{client:12} {count['compared']:5} compared {count['alike']:5} alike {count['left out']:5} left out")
    for why, number in left_out.items():
        print(f"left out: {number} {why}")
    print(f"{alike} of {compared} alike ({alike / max(compared, 1):.2%})")


if __name__ == "__main__":
    main()
