"""What an answer tells its client beside the object: headers ``Warning`` (``apiserver/pkg/warning``)."""

from __future__ import annotations

from contextvars import ContextVar, Token

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


class Gathering:
    """``into`` gets them; a refusal carries them, too."""

    __slots__ = ("_into", "_was")

    _was: Token[list[str] | None]

    def __init__(self, into: list[str]) -> None:
        self._into = into

    def __enter__(self) -> None:
        self._was = _TOLD.set(self._into)

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, ApiError):
            error.warnings = [*self._into]
        _TOLD.reset(self._was)
