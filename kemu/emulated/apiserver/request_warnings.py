"""What an answer tells its client beside the object: headers ``Warning`` (``apiserver/pkg/warning``)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from kemu.errors import ApiError

_TOLD: ContextVar[list[str] | None] = ContextVar("warnings", default=None)
"""Of the request that is being carried out; None: nobody would hear of them."""


def warn(text: str) -> None:
    """Tell the client, once."""
    told = _TOLD.get()
    if told is not None and text not in told:
        told.append(text)


def are_heard() -> bool:
    """Whether a client hears of warnings."""
    return _TOLD.get() is not None


@contextmanager
def gathering(into: list[str]) -> Iterator[None]:
    """``into`` gets them; a refusal carries them, too."""
    was = _TOLD.set(into)
    try:
        yield
    except ApiError as error:
        error.warnings = [*into]
        raise
    finally:
        _TOLD.reset(was)
