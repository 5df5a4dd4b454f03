"""A device belongs to one claim at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from kemu.lab.checks.history import History
from kemu.lab.checks.history.claims import DeviceID, text_of
from kemu.lab.checks.results import Check, Fold, Result, seconds
from kemu.runtime.runlog.events import ActorStarted, DevicesPrepared, DevicesUnprepared, Event
from kemu.runtime.words import short

KUBELET = "kubelet/"


class DeviceHasOneClaim(Check):
    """Devices that are allocated as a whole, from when the allocation is written until it is taken back, and on their
    node, from when they are prepared until they are unprepared. Nothing in the API keeps two claims apart: whoever
    allocates must; and a pod that was removed by force may still run when its claim is gone."""

    id: ClassVar[str] = "device-has-one-claim"
    folds: ClassVar[tuple[type[Fold], ...]] = (Fold,)
    actors: ClassVar[Mapping[type[Event], str]] = {ActorStarted: KUBELET}

    def __init__(self) -> None:
        self._prepared: dict[str, dict[DeviceID, dict[str, str]]] = {}
        """By kubelet and device: the claims, each with the UID of the pod that it was prepared for."""
        self._findings: list[str] = []

    def given(self, *folds: Fold) -> None:
        self._history = folds[0].history

    def _on_started(self, time_ns: int, actor: str, event: ActorStarted) -> None:
        # It may have unprepared what it finds, and tells nobody.
        self._prepared.pop(actor, None)

    def _on_prepared(self, time_ns: int, actor: str, event: DevicesPrepared) -> None:
        here = self._prepared.setdefault(actor, {})
        for claim in event.claims:
            for device in self._history.claims.devices_of(claim):
                users = here.setdefault(device, {})
                self._findings += [
                    f"{text_of(device)} was prepared for claim {short(claim)}{_of(self._history, event.uid)} at"
                    f" {seconds(time_ns)}, while it was prepared for claim {short(other)}{_of(self._history, uid)}"
                    for other, uid in users.items()
                    if other != claim and not self._are_both_held(device, claim, other)
                ]
                users[claim] = event.uid

    def _are_both_held(self, device: DeviceID, *claims: str) -> bool:
        """Then that is told already."""
        held = [one.claim for one in self._history.claims.held(self._history.now_ns) if one.device == device]
        return all(claim in held for claim in claims)

    def _on_unprepared(self, time_ns: int, actor: str, event: DevicesUnprepared) -> None:
        for users in self._prepared.get(actor, {}).values():
            for claim in event.claims:
                if users.get(claim) == event.uid:
                    del users[claim]

    def result(self, history: History) -> Result:
        grants = history.claims.grants
        findings = [
            f"{text_of(device)} was given to claim {short(grant.claim)}{_of(history, grant.pod)} at"
            f" {seconds(grant.time_ns)}, while claim {short(other)}{_of(history, _holder(history, other))} held it"
            for grant in grants
            for device, other in grant.taken
        ]
        judged = sum(len(grant.devices) for grant in grants)
        good = f"{judged} devices were given to claims"
        return self.concluded(findings + self._findings, judged, "no claim was given a device", good)


def _of(history: History, uid: str) -> str:
    pod = history.pods.get(uid)
    return f" of {short(pod.key)}" if pod is not None else ""


def _holder(history: History, claim: str) -> str:
    """UID of the pod that a claim was last given devices for."""
    return next((grant.pod for grant in reversed(history.claims.grants) if grant.claim == claim), "")
