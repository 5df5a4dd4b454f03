"""A device belongs to one claim at a time."""

from __future__ import annotations

from kemu.lab.checks.history import History
from kemu.lab.checks.history.claims import text_of
from kemu.lab.checks.results import Check, Result, seconds
from kemu.runtime.words import short


class DeviceHasOneClaim(Check):
    """Devices that are allocated as a whole, from when the allocation is written until it is taken back. Nothing in the
    API keeps two claims apart: whoever allocates must."""

    id = "device-has-one-claim"

    def result(self, history: History) -> Result:
        grants = history.claims.grants
        findings = [
            f"{text_of(device)} was given to claim {short(grant.claim)}{_of(history, grant.pod)} at"
            f" {seconds(grant.time_ns)}, while claim {short(other)}{_of(history, _holder(history, other))} held it"
            for grant in grants
            for device, other in grant.taken
        ]
        judged = sum(len(grant.devices) for grant in grants)
        return self.concluded(findings, judged, "no claim was given a device", f"{judged} devices were given to claims")


def _of(history: History, uid: str) -> str:
    pod = history.pods.get(uid)
    return f" of {short(pod.key)}" if pod is not None else ""


def _holder(history: History, claim: str) -> str:
    """UID of the pod that a claim was last given devices for."""
    return next((grant.pod for grant in reversed(history.claims.grants) if grant.claim == claim), "")
