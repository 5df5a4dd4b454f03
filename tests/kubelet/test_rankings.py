"""The order in which a kubelet evicts pods, today's and those to compare it with (``evictionRanking``)."""

from __future__ import annotations

import pytest

from tests.kubelet import pressured

ALL_BUT_ONE = {"evictionHard": {"memory.available": "300Mi"}}


@pytest.mark.parametrize(
    ("ranking", "first"),
    [
        # Those that exceed their request come first; of the lowest priority among them, "much" does so by most bytes.
        (None, "much"),
        ("current", "much"),
        # The same, by share of the request.
        ("percentage", "double"),
        # Priority comes first, whether or not the request is exceeded.
        ("priority-first", "modest"),
    ],
)
def test_order(ranking: str | None, first: str) -> None:
    node = pressured.node(memory="2000Mi")
    config = {} if ranking is None else {"policy": {"evictionRanking": ranking}}
    bench = pressured.Bench(node, kubelet=ALL_BUT_ONE, **config)
    for name, priority, used, requested in [
        ("much", 5, "900Mi", "600Mi"),
        ("double", 5, "200Mi", "100Mi"),
        ("modest", 1, "100Mi", "200Mi"),
        ("important", 9, "600Mi", "1Mi"),
    ]:
        usage = {"memory": {"constant": used}}
        bench.run(pressured.pod(name, usage, priority=priority, requests={"memory": requested}))
    bench.play(25)
    assert bench.evictions()[0][1] == first


def test_use_without_a_request_is_more_than_any_share() -> None:
    bench = pressured.Bench(
        pressured.node(memory="2000Mi"), kubelet=ALL_BUT_ONE, policy={"evictionRanking": "percentage"}
    )
    bench.run(pressured.pod("requests", {"memory": {"constant": "1800Mi"}}, requests={"memory": "1Mi"}))
    bench.run(pressured.pod("best-effort", {"memory": {"constant": "10Mi"}}))
    bench.play(25)
    assert bench.evictions()[0][1] == "best-effort"
