"""The parts of an API server without single safeguards (:mod:`kemu.emulated.safeguards`), for
:mod:`kemu.emulated.apiserver.server`.

Each class is its base without one thing. The functions choose what an API server is made of.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from kemu.emulated import safeguards
from kemu.emulated.apiserver import admission
from kemu.emulated.apiserver.admission.base import Plugin
from kemu.emulated.apiserver.admission.quotas.accounts import Accounts, WriteStatus
from kemu.emulated.apiserver.admission.quotas.plugin import ResourceQuota
from kemu.emulated.apiserver.registry.bindings import Binder
from kemu.emulated.apiserver.registry.evictions import Evictor
from kemu.emulated.apiserver.registry.registry import Registry
from kemu.emulated.apiserver.registry.strategies import Strategy
from kemu.emulated.apiserver.storage import Storage
from kemu.emulated.apiserver.watch.feed import Feed
from kemu.emulated.objects.quotas.quotas import Quota
from kemu.messages.k8s import core_v1_pb2, policy_v1_pb2


class _AnyVersion(Registry):
    def _has_version(self, wanted: int, revision: int) -> bool:
        return True


class _AnyUid(Registry):
    def has_uid(self, wanted: str, uid: str) -> bool:
        return True


class _BindsAgain(Binder):
    def _check_unbound(self, pod: core_v1_pb2.Pod) -> None:
        return


class _DeletesAtOnce(Registry):
    def _grace_s(self, strategy: Strategy, obj: Any, wanted: int | None) -> int | None:
        return 0 if strategy.grace_s is not None else None


class _KeepsNoAccounts(Evictor):
    """Budgets are asked, but what was taken from them is not written down."""

    def _account(self, budget: policy_v1_pb2.PodDisruptionBudget, pod_name: str) -> None:
        return


class _BlindAccounts(Accounts):
    def _precondition(self, quota: Quota) -> str:
        return ""


class _ChargesBlindly(ResourceQuota):
    """Writes what is used over whatever others have charged meanwhile."""

    def _accounts(self, write_status: WriteStatus) -> Accounts:
        return _BlindAccounts(self._known, write_status)


class _Overwrites(Storage):
    """What does not exist is still created only once."""

    def _expect(self, txn: Any, key: bytes, revision: int) -> None:
        if not revision:
            super()._expect(txn, key, revision)


class _StartsFromNow(Feed):
    """The watch on the store, which continues after a list, but not after another watch."""

    _listed = 0
    """``_received`` when the last list was complete and no watch had followed."""

    async def load(self) -> None:
        await super().load()
        self._listed = self._received

    def _start_revision(self) -> int:
        first, self._listed = self._listed, 0
        return first + 1 if first else 0


class _NeverLists(Feed):
    """Goes on with what comes from now on, after a gap."""

    _gap = False

    async def _reload(self) -> None:
        self._gap = True

    def _start_revision(self) -> int:
        gap, self._gap = self._gap, False
        return 0 if gap else super()._start_revision()


def registry(ablated: Collection[str]) -> type[Registry]:
    lacking: dict[str, type[Registry]] = {
        "resource-version-precondition": _AnyVersion,
        "uid-precondition": _AnyUid,
        "graceful-termination": _DeletesAtOnce,
    }
    return safeguards.without(Registry, lacking, ablated)


def binder(ablated: Collection[str]) -> type[Binder]:
    return safeguards.without(Binder, {"bind-once": _BindsAgain}, ablated)


def evictor(ablated: Collection[str]) -> type[Evictor]:
    return safeguards.without(Evictor, {"budget-accounting": _KeepsNoAccounts}, ablated)


def plugins(ablated: Collection[str]) -> Mapping[str, type[Plugin[Any]]]:
    quota = safeguards.without(ResourceQuota, {"quota-charge-precondition": _ChargesBlindly}, ablated)
    return {**admission.PLUGINS, "ResourceQuota": quota}


def storage(ablated: Collection[str]) -> type[Storage]:
    return safeguards.without(Storage, {"compare-and-swap": _Overwrites}, ablated)


def feed(ablated: Collection[str]) -> type[Feed]:
    lacking: dict[str, type[Feed]] = {"relist-on-gap": _NeverLists, "watch-resume": _StartsFromNow}
    return safeguards.without(Feed, lacking, ablated)
