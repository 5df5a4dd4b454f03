"""PodSecurity where no recorded case leads: a cache that lags, namespaces with thousands of pods, standards by version.

The rest is compared with records (``tests/conformance/data/writes/admitted.jsonl.gz``).
"""

from __future__ import annotations

import pytest

from kemu import errors
from kemu.emulated.apiserver import request_warnings
from kemu.emulated.apiserver.admission.pod_security import baseline, evaluations, plugin, policies, restricted
from kemu.emulated.apiserver.admission.pod_security.policies import Standard
from kemu.messages.k8s import core_v1_pb2
from tests.apiserver.apiserver_cluster import Cluster, pod, refusal, run


def namespace(name: str, **labels: str) -> core_v1_pb2.Namespace:
    new = core_v1_pb2.Namespace()
    new.metadata.name = name
    for mode, value in labels.items():
        new.metadata.labels[policies.PREFIX + mode] = value
    return new


def on_host(name: str, space: str, owner: str = "") -> core_v1_pb2.Pod:
    new = pod(name, space)
    new.spec.hostNetwork = True
    if owner:
        new.metadata.ownerReferences.add(apiVersion="v1", kind="X", name=owner, uid=owner, controller=True)
    return new


def test_a_namespace_that_the_cache_has_not_seen_counts() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(namespace("fresh", enforce="baseline"))
        error = await refusal(errors.Forbidden, cluster.client.create(on_host("a", "fresh")), cluster)
        assert str(error) == (
            'pods "a" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)'
        )
        await cluster.client.create(pod("b", "fresh"))

    run(main, servers=({"cache_lag_s": 5},))


def test_who_hears_of_no_warnings_is_not_judged_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    violations = evaluations.violations
    monkeypatch.setattr(
        evaluations,
        "violations",
        lambda standard, *given: (asked.append(str(standard)), violations(standard, *given))[1],
    )
    policy, found = policies.read({f"{policies.PREFIX}enforce": "baseline", f"{policies.PREFIX}warn-version": "v1.20"})
    assert not found
    plugin._judge(plugin._PODS, pod("a"), policy)
    assert asked == ["baseline:latest"]
    told: list[str] = []
    with request_warnings.Gathering(told):
        plugin._judge(plugin._PODS, pod("a"), policy)
    assert asked[1:] == ["baseline:latest", "baseline:v1.20"]
    assert not told


def test_of_many_pods_the_first_of_each_owner_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin, "MOST_PODS", 3)
    pods = [on_host("a1", "n", "a"), on_host("a2", "n", "a"), on_host("b1", "n", "b"), on_host("c", "n"), pod("d", "n")]
    assert [one.metadata.name for one in plugin._in_turn(pods)] == ["a1", "b1", "c", "d", "a2"]
    assert list(plugin._warnings("n", Standard(policies.BASELINE, 20), pods)) == [
        "new PodSecurity enforce level only checked against the first 3 of 5 existing pods",
        'existing pods in namespace "n" violate the new PodSecurity enforce level "baseline:v1.20"',
        "a1 (and 2 other pods): host namespaces",
    ]


@pytest.mark.parametrize(
    ("standard", "with_names", "without"),
    [
        (Standard("baseline", 18), ["hostPathVolumes"], ["hostProbesAndHostLifecycle", "runAsNonRoot"]),
        (Standard("baseline", 34), ["hostProbesAndHostLifecycle"], []),
        (Standard("restricted", 7), ["restrictedVolumes"], ["hostPathVolumes", "allowPrivilegeEscalation"]),
        (Standard("restricted", 21), ["capabilities_baseline"], ["capabilities_restricted", "seccompProfile_baseline"]),
        (Standard("restricted", 34), ["procMount"], ["procMount_restricted"]),
        (Standard("restricted", None), ["procMount_restricted"], ["procMount", "capabilities_baseline"]),
        (Standard("restricted", 999), ["procMount_restricted"], ["procMount", "capabilities_baseline"]),
    ],
    ids=str,
)
def test_the_checks_of_a_standard(standard: Standard, with_names: list[str], without: list[str]) -> None:
    checks = evaluations._checks(standard)
    every = {name: {one[1] for one in versions} for name, versions in baseline.CHECKS.items()}
    every |= {name: {one.check for one in versions} for name, versions in restricted.CHECKS.items()}
    own = {name for name, found in every.items() if found & set(checks)}
    # One function serves two checks.
    own -= {"procMount"} if "procMount_restricted" in own and "procMount" in without else set()
    own -= {"procMount_restricted"} if "procMount_restricted" in without else set()
    assert set(with_names) <= own
    assert not set(without) & own
