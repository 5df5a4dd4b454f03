"""What an API server may be made of instead: the classes of its variants (:mod:`kemu.emulated.variants`).

    Registry   which preconditions of a write count, and how long a deletion waits
    Storage    what a write to the store is held against
    Binder     which pods may be bound
    Evictor    what is taken from disruption budgets
    Feed       where the watch on the store goes on

Each class is its base without one thing.
"""

from __future__ import annotations

from kemu.emulated.apiserver.registry.bindings import Binder
from kemu.emulated.apiserver.registry.evictions import Evictor
from kemu.emulated.apiserver.registry.registry import Registry
from kemu.emulated.apiserver.registry.strategies import Strategy
from kemu.emulated.apiserver.storage import Storage
from kemu.emulated.apiserver.watch.feed import Feed
from kemu.emulated.variants import replaces
from kemu.messages.etcd import rpc_pb2
from kemu.messages.k8s import core_v1_pb2, policy_v1_pb2
from kemu.messages.k8s.objects import KubernetesObject


@replaces(Registry, "resource-version-precondition")
class _AnyVersion(Registry):
    """Any resource version is accepted."""

    def _has_version(self, wanted: int, revision: int) -> bool:
        return True


@replaces(Registry, "uid-precondition")
class _AnyUid(Registry):
    """Any UID is accepted."""

    def has_uid(self, wanted: str, uid: str) -> bool:
        return True


@replaces(Binder, "bind-once")
class _BindsAgain(Binder):
    """Bound pods may be bound again."""

    def _check_unbound(self, pod: core_v1_pb2.Pod) -> None:
        return


@replaces(Registry, "graceful-termination")
class _DeletesAtOnce(Registry):
    """No deletion waits for containers."""

    def _grace_s(self, strategy: Strategy, obj: KubernetesObject, wanted: int | None) -> int | None:
        return 0 if strategy.grace_s is not None else None


@replaces(Evictor, "budget-accounting")
class _KeepsNoAccounts(Evictor):
    """Budgets are asked, but what was taken from them is not written down."""

    def _account(self, budget: policy_v1_pb2.PodDisruptionBudget, pod_name: str) -> None:
        return


@replaces(Storage, "compare-and-swap")
class _Overwrites(Storage):
    """What does not exist is still created only once."""

    @staticmethod
    def _expect(txn: rpc_pb2.TxnRequest, key: bytes, revision: int) -> None:
        if not revision:
            Storage._expect(txn, key, revision)


@replaces(Feed, "relist-on-gap")
class _NeverLists(Feed):
    """Goes on with what comes from now on, after a gap."""

    _gap = False

    async def _reload(self) -> None:
        self._gap = True

    def _start_revision(self) -> int:
        gap, self._gap = self._gap, False
        return 0 if gap else super()._start_revision()


@replaces(Feed, "watch-resume")
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
