"""How explanations call actors, pods and amounts."""

from __future__ import annotations

from collections.abc import Iterable

from kemu.emulated.objects.amounts import quantities
from kemu.lab.tell import people
from kemu.runtime.runlog.events import ApiRequest
from kemu.runtime.runlog.frames import Entry
from kemu.runtime.words import short

_ORDINALS = ("first", "second", "third", "fourth", "fifth")


class Names:
    """Names of one run: one that is alone is not told apart."""

    def __init__(self, events: Iterable[Entry]) -> None:
        actors: dict[str, None] = {}
        self._uids: dict[str, list[str]] = {}
        """By pod, in the order in which they appear."""
        for _, actor, _, event in events:
            actors[actor] = None
            if isinstance(event, ApiRequest) and event.resource == "pods" and event.uid:
                uids = self._uids.setdefault(event.object_key, [])
                if event.uid not in uids:
                    uids.append(event.uid)
        self._of_kind: dict[str, list[str]] = {}
        for actor in actors:
            self._of_kind.setdefault(actor.partition("/")[0], []).append(actor)
        self._schedulers = {actor.split("/")[1] for actor in self._of_kind.get("scheduler", ()) if "/" in actor}

    def actor(self, actor: str) -> str:
        """In a sentence: ``scheduler red``, ``the API server``, ``kubelet node-1``."""
        kind, _, rest = actor.partition("/")
        if kind == "scheduler":
            name, _, replica = rest.partition("/")
            replicas = [one for one in self._of_kind["scheduler"] if one.split("/")[1] == name]
            if len(self._schedulers) == 1:
                return "the scheduler" if len(replicas) <= 1 else f"scheduler replica {replica}"
            return f"scheduler {name}" if len(replicas) <= 1 else f"scheduler {name}/{replica}"
        if kind == "apiserver":
            return "the API server" if len(self._of_kind.get(kind, ())) <= 1 else f"API server {rest}"
        if kind == "kubelet":
            return f"kubelet {rest}"
        if kind == "controller":
            return f"controller {rest}"
        return f"the {actor}" if actor in ("user", "store", "operator") else actor

    def again(self, actor: str) -> str:
        """Where the sentence has named it already."""
        name = self.actor(actor)
        if name.startswith("kubelet "):
            return "that kubelet"
        return "it" if name.startswith("the ") else name.removeprefix("scheduler ")

    def column(self, actor: str) -> str:
        """Above a column of a picture."""
        name = self.actor(actor).removeprefix("the ")
        return name.removeprefix("scheduler ") if name.startswith("scheduler replica ") else name

    def which(self, key: str, uid: str) -> int:
        """Its number among the pods of that name, in the order of their creation."""
        uids = self._uids.get(key, [])
        return uids.index(uid) if uid in uids else 0

    def pod(self, key: str, uid: str = "") -> str:
        """``key`` is ``namespace/name``. Which of several pods of one name, if ``uid`` says it."""
        uids = self._uids.get(key, [])
        name = short(key)
        if len(uids) > 1 and uid in uids and uids.index(uid) < len(_ORDINALS):
            return f"the {_ORDINALS[uids.index(uid)]} {name}"
        return name


def sentence(text: str) -> str:
    """With a capital letter first, unless it begins with the name of an object: ``web/a-5f7``, ``ip-10-0-1-2``."""
    first = text.partition(" ")[0]
    return text if any(mark in first.rstrip(".") for mark in "/-.") else text[:1].upper() + text[1:]


def at(time_ns: int) -> str:
    """For people: ``5.508 s``."""
    return f"{time_ns / 1e9:.3f} s"


def lasting(span_ns: int) -> str:
    """``4 ms``, ``1.5 s``."""
    if span_ns >= 1_000_000:
        return people.duration(span_ns / 1e9)
    return f"{span_ns / 1e3:.3g} µs" if span_ns >= 1000 else f"{span_ns} ns"


def amount(resource: str, number: int) -> str:
    """``3 CPUs``, ``2Gi of memory``."""
    if resource == "cpu":
        text = quantities.format_milli(number)
        if text.endswith("m"):
            text = f"{number / 1000:g}"
        return f"{text} CPU" if text == "1" else f"{text} CPUs"
    if resource in ("memory", "ephemeral-storage"):
        return f"{people.quantity(number)} of {resource}"
    if resource == "pods":
        return f"room for {number} pod{'s' * (number != 1)}"
    return f"{number} {resource}"
