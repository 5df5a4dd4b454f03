"""The engine of the events: a class for each kind, from its declaration.

An event is the dict that stands in the run log, so writing one costs what the dict costs. Its class gives it its kind
and its fields: they are named once, with their types, where constructor, attributes, :mod:`reading` and docs/runs.md
take them from. A module of a user declares its own kinds in the same way:

    class EchoAlive(Event, kind="echo.alive", by="echo"):
        \"\"\"It is alive.\"\"\"

        number: int

    env.log(EchoAlive(number=3))

Keys stand in the log in the order of the constructor's arguments; the order of the fields is that of the document.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter, methodcaller
from typing import Any, ClassVar, NamedTuple, Self, TypeVar, dataclass_transform

from kemu.runtime.runlog.events.words import Deed, Line, Names, Traced, filled

_ABSENT: Any = object()


class Field(NamedTuple):
    """One field of an event, as declared."""

    name: str
    key: str
    """Its name in the log."""
    type: str = ""
    """As annotated."""
    default: Any = _ABSENT
    """What an event says that lacks it."""

    @property
    def is_optional(self) -> bool:
        return self.default is not _ABSENT


def field(*, key: str = "", default: object = _ABSENT) -> Any:  # noqa: ANN401  # of any type, as dataclasses.field
    """Declares a field that has another name in the log (``key``), or that an event may lack (``default``)."""
    return Field("", key, default=default)


def _reader(one: Field) -> Callable[[Any], Any]:
    if not one.is_optional:
        return itemgetter(one.key)
    return methodcaller("get", one.key, one.default)


def _renaming(renamed: Mapping[str, str]) -> Callable[..., None]:
    def init(self: dict[str, Any], data: Mapping[str, Any] = {}, /, **fields: object) -> None:  # not changed
        self.update(data)
        for name, value in fields.items():
            self[renamed.get(name, name)] = value

    return init


BY_KIND: dict[str, type[Event]] = {}
"""Every declared class, by the kind that stands in the log."""


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
class Event(dict[str, Any]):
    """What happened, as an actor tells it: msgpack-able values by the names of its fields."""

    KIND: ClassVar[str] = ""
    BY: ClassVar[str] = ""
    """Who logs it."""
    ON_PAGE: ClassVar[bool] = False
    """The page of a run shows it beside the sentences that refer to it."""
    LIVE: ClassVar[Line | None] = None
    """What a cluster that runs tells of it, where that is always the same."""
    DEED: ClassVar[Deed | None] = None
    """What an explanation says that its actor did, where that is always the same."""
    SUBJECT: ClassVar[tuple[str, ...]] = ()
    """The fields by which :meth:`lines` gets the event before this one that is about the same."""
    FIELDS: ClassVar[Mapping[str, Field]] = {}

    def __init_subclass__(cls, *, kind: str = "", by: str = "", on_page: bool = False) -> None:
        """Makes attributes of the fields, which read the dict."""
        fields = dict(cls.FIELDS)
        for name, annotation in vars(cls).get("__annotations__", {}).items():
            said = vars(cls).get(name, Field("", ""))
            if not isinstance(said, Field):
                said = Field("", "", default=said)
            fields[name] = one = said._replace(name=name, key=said.key or name, type=str(annotation))
            setattr(cls, name, property(_reader(one)))
        cls.FIELDS = fields
        if kind:
            cls.KIND, cls.BY, cls.ON_PAGE = kind, by, on_page
            renamed = {one.name: one.key for one in fields.values() if one.name != one.key}
            if renamed:
                cls.__init__ = _renaming(renamed)  # type: ignore[method-assign]
            if BY_KIND.setdefault(kind, cls).__name__ != cls.__name__:
                raise TypeError(f"{kind} is declared twice: {BY_KIND[kind].__name__} and {cls.__name__}")
            BY_KIND[kind] = cls

    def lines(self, before: Any) -> Sequence[Line]:  # noqa: ANN401  # an event of the same component
        """What a story tells of it. ``before``: the latest event with the same subject; None: there was none."""
        return ()

    def live(self) -> Line | None:
        """What a cluster that runs tells of it."""
        return self.LIVE

    def deed(self, pod: str, names: Names) -> Deed | None:
        """What an explanation says that its actor did. ``pod``: as it calls the pod of the event."""
        deed = self.DEED
        if deed is None:
            return None
        return deed._replace(text=filled(deed.text, self, pod=pod), short=filled(deed.short, self, pod=pod))

    def traced(self) -> Traced | None:
        """The span that traces make of it by itself."""
        return None

    def by_clock(self, true_ns: Callable[[int], int]) -> Self:
        """With true times, where it was told by a clock that is wrong."""
        if "start" not in self:
            return self
        copied: Callable[[Event], Self] = type(self)
        event = copied(self)
        event["start"] = true_ns(self["start"])
        return event


E = TypeVar("E", bound=Event)


def typed(kind: str, data: Mapping[str, Any]) -> Event:
    """The event that stands in a log: of its class; where its kind is another version's or a user's, of none."""
    if isinstance(data, Event):
        return data
    declared: Callable[[Mapping[str, Any]], Event] | None = BY_KIND.get(kind)
    return own(kind, data) if declared is None else declared(data)


class _Own(Event):
    """An event of a kind that no class declares."""

    def __reduce__(self) -> tuple[Callable[..., Event], tuple[str, dict[str, Any]]]:
        return own, (self.KIND, dict(self))


_OWN: dict[str, Any] = {}
"""Their classes, by kind."""


def own(kind: str, data: Mapping[str, Any] | None = None) -> Event:
    """An event of a kind that no class declares."""
    if kind not in _OWN:
        _OWN[kind] = type("own", (_Own,), {"KIND": kind})
    made: Any = _OWN[kind]
    return made(data or {})  # type: ignore[no-any-return]


def kinds(*events: type[Event]) -> tuple[str, ...]:
    """What stands in the log for these classes."""
    return tuple(event.KIND for event in events)
