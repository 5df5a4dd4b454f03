"""What the store may be made of instead: the classes of its variants (:mod:`kemu.emulated.variants`)."""

from __future__ import annotations

from kemu.emulated.store.server import Store
from kemu.emulated.variants import replaces


@replaces(Store, "journal-before-acknowledgement")
class _AnswersAtOnce(Store):
    """Clients are answered before anything is in the journal."""

    def _is_settled(self) -> bool:
        super()._is_settled()
        return True


@replaces(Store, "fsync-before-acknowledgement")
class _SyncsLater(Store):
    """Clients and watchers are told before the journal is durable."""

    async def _sync(self) -> None:
        self.env.spawn(super()._sync(), "fsync")
