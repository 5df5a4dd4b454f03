"""CEL in admission: what expressions may name, and match conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kemu.emulated.apiserver.admission.external.attributes import Attributes
from kemu.emulated.apiserver.authorization.authorizers import Authorizer
from kemu.emulated.apiserver.watch.cache import WatchCache
from kemu.messages.k8s import admissionregistration_v1_pb2 as v1


class Conditions:
    def __init__(self, cache: WatchCache, authorizer: Authorizer) -> None:
        self._cache = cache
        self._authorizer = authorizer

    def hold(
        self,
        conditions: Sequence[v1.MatchCondition],
        attributes: Attributes,
        params: dict[str, Any] | None,
        fails: bool,
        of: str,
    ) -> bool:
        raise NotImplementedError
