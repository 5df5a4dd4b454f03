"""Caches: of answers about texts that clients choose, bounded in entries and in bytes; of parts that an object has.

``functools.lru_cache`` bounds entries alone, and remembers a text of 3 MiB as it does one of three letters: 65,536
label values that were refused would fill the memory of any machine.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

T = TypeVar("T")
S = TypeVar("S")

SHORT = 256
"""Letters or bytes of what is asked for; more is counted."""
MOST = 16 << 20
"""So much of what is long is remembered, and then all is forgotten."""


def text_cache(size: int) -> Callable[[Callable[..., T]], _lru_cache_wrapper[T]]:
    """As ``lru_cache(size)``. It costs nothing where the answer is known."""

    def cached(function: Callable[..., T]) -> _lru_cache_wrapper[T]:
        held = 0

        @functools.wraps(function)
        def missed(*asked: Any) -> T:
            nonlocal held
            length = sum(len(one) for one in asked if isinstance(one, str | bytes))
            if length > SHORT:
                held += length
                if held > MOST:
                    remembered.cache_clear()
                    held = length
            return function(*asked)

        remembered: _lru_cache_wrapper[T] = functools.lru_cache(size)(missed)
        return remembered

    return cached


class late(Generic[S, T]):  # noqa: N801  # used like functools.cached_property
    """A part that is made when it is first asked for. As ``functools.cached_property``, but without a dictionary for
    each object, which would take more memory than most parts."""

    def __init__(self, make: Callable[[S], T]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, owner: S, kind: type[S]) -> T:
        part = self._make(owner)
        setattr(owner, self._name, part)
        return part
