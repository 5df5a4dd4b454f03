"""Claims of devices in a history: who holds what, the check device-has-one-claim, and what stories say."""

from __future__ import annotations

import pytest

from kemu.emulated.objects.conversion import convert
from kemu.lab.checks.history import History
from kemu.lab.checks.history.claims import PREFIX
from kemu.lab.checks.history.facts import Fact
from kemu.lab.checks.nodes.devices import DeviceHasOneClaim
from kemu.lab.checks.registry import Judge
from kemu.lab.checks.results import Result
from kemu.lab.tell import devices
from kemu.lab.tell.happenings import all_of
from kemu.messages.k8s import core_v1_pb2, resource_v1_pb2
from kemu.runtime.runlog.events import typed

GPU_0, GPU_1 = ("gpu.example.com", "node-1", "gpu-0"), ("gpu.example.com", "node-1", "gpu-1")


def claim(name: str, *given: tuple[str, str, str], **result: object) -> bytes:
    """Of the pod of its name, which it is reserved for once it is allocated."""
    data = {
        "metadata": {"name": name, "namespace": "default", "uid": f"of-{name}"},
        "spec": {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}},
    }
    if given:
        results = [
            {"request": "gpu", "driver": driver, "pool": pool, "device": device, **result}
            for driver, pool, device in given
        ]
        users = [{"resource": "pods", "name": name, "uid": name}]
        data["status"] = {"allocation": {"devices": {"results": results}}, "reservedFor": users}
    return convert.from_json(resource_v1_pb2.ResourceClaim, data).SerializeToString()


def pod(name: str) -> bytes:
    data = {
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"schedulerName": name, "resourceClaims": [{"name": "gpu", "resourceClaimName": name}]},
    }
    return convert.from_json(core_v1_pb2.Pod, data).SerializeToString()


def fed(*writes: tuple[str, bytes | None]) -> History:
    """One write a second, of the claim of that name, or of an object with that key."""
    history = History()
    for second, (name, value) in enumerate(writes, start=1):
        key = name if name.startswith("/") else f"{PREFIX}default/{name}"
        change = [0 if value is not None else 1, key, value or b"", 1, 1]
        data = {"rev": second, "changes": [change], "bases": None}
        history.feed(second * 1_000_000_000, "store", "store.txn", typed("store.txn", data))
    return history


def test_a_device_of_two_claims_is_found_with_both() -> None:
    history = fed(
        ("/registry/pods/default/red", pod("red")), ("/registry/pods/default/blue", pod("blue")),
        ("red", claim("red", GPU_0)), ("blue", claim("blue", GPU_0, GPU_1)),
    )  # fmt: skip
    found = DeviceHasOneClaim().result(history)
    assert found.holds is False
    assert found.detail == (
        "gpu.example.com/node-1/gpu-0 was given to claim blue of blue at 4.000 s, while claim red of red held it"
    )
    told = [(one.kind, one.who, one.phrase(), one.reason()) for one in all_of(history) if "gets" in one.phrase()]
    assert told == [
        ("device", "scheduler red", "claim red of red gets gpu.example.com/node-1/gpu-0", ""),
        (
            "conflict", "scheduler blue",
            "claim blue of blue gets gpu.example.com/node-1/gpu-0, gpu.example.com/node-1/gpu-1",
            "gpu.example.com/node-1/gpu-0 is held by claim red of red",
        ),
    ]  # fmt: skip


def test_a_device_that_was_given_back_may_be_given_away_again() -> None:
    found = DeviceHasOneClaim().result(fed(("red", claim("red", GPU_0)), ("red", None), ("blue", claim("blue", GPU_0))))
    assert (found.holds, found.detail) == (True, "2 devices were given to claims")


def test_a_device_that_is_still_prepared_for_a_claim_that_is_gone_is_found() -> None:
    found = prepared(("first", 3), ("second", 5))
    assert found.holds is False
    assert found.detail == (
        "gpu.example.com/node-1/gpu-0 was prepared for claim second of second at 5.000 s, while it was prepared for"
        " claim first of first"
    )


@pytest.mark.parametrize("between", ["devices.unprepared", "actor.started"])
def test_a_device_that_was_unprepared_may_be_prepared_again(between: str) -> None:
    assert prepared(("first", 3), ("second", 5), between=between).holds is True


def prepared(*at: tuple[str, int], between: str = "") -> Result:
    """The device of claims and pods of these names, one after the other, prepared at these seconds."""
    judge = Judge()
    second = 1_000_000_000

    def write(at_s: int, rev: int, key: str, value: bytes | None) -> None:
        change = [0 if value is not None else 1, key, value or b"", 1, 1]
        data = {"rev": rev, "changes": [change], "bases": None}
        judge.feed(at_s * second, "store", "store.txn", typed("store.txn", data))

    for place, (name, at_s) in enumerate(at):
        write(at_s - 1, 3 * place + 1, f"/registry/pods/default/{name}", pod(name))
        write(at_s - 1, 3 * place + 2, f"{PREFIX}default/{name}", claim(name, GPU_0))
        said = {"pod": f"default/{name}", "uid": name, "claims": [f"default/{name}"]}
        kind = "devices.prepared"
        judge.feed(at_s * second, "kubelet/node-1", kind, typed(kind, {**said, "start": at_s * second}))
        write(at_s, 3 * place + 3, f"{PREFIX}default/{name}", None)
        if between:
            data = said if between == "devices.unprepared" else {"incarnation": 2}
            judge.feed(at_s * second, "kubelet/node-1", between, typed(between, data))
    return next(one for one in judge.results() if one.id == DeviceHasOneClaim.id)


def test_admin_access_and_shares_are_not_judged() -> None:
    for result in ({"adminAccess": True}, {"shareID": "11111111-2222-4333-8444-555555555555"}):
        written = fed(("red", claim("red", GPU_0, **result)), ("blue", claim("blue", GPU_0, **result)))
        assert DeviceHasOneClaim().result(written).holds is None


def test_who_waits_is_told_who_holds_what_it_asks_for() -> None:
    history = fed(
        ("red", claim("red", GPU_0)), ("blue", claim("blue")), ("/registry/pods/default/blue", pod("blue")),
        ("red", claim("red")),
    )  # fmt: skip
    message = "0/1 nodes are available: 1 cannot allocate all claims."
    said = []
    for at_s in (3, 5):
        fact = Fact(at_s * 1_000_000_000, "unschedulable", message=message)
        said.append(devices.who_holds(history, history.pods["blue"], fact))
    assert said == [
        "; claim blue wants 1 of class gpu.example.com; held are gpu.example.com/node-1/gpu-0 by claim red",
        "; claim blue wants 1 of class gpu.example.com; no device of that class is held",
    ]
