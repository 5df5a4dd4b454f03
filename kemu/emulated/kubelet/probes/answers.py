"""What containers answer to their probes over time, from the pod's annotation ``kemu.dev/probes``.

There are no processes to ask, so the annotation says, by container and probe, when a probe fails:

    {main: {startup: {succeedsAfter: 40s},
            readiness: {failsFrom: 60s, failsFor: 20s, every: 5m},
            liveness: {failsAbove: {memory: 90%}, latency: 200ms}}}

Times count from the start of the container. Whatever is not said succeeds at once, and a probe fails if any of its
rules says so:

    succeedsAfter   it fails until then
    failsFrom       it fails from then on; failsFor: for so long; every: again each such time
    failsAbove      it fails while the container uses more cpu or memory than this amount or share of its limit
    failureRate     each probe fails with this probability
    latency         how long an answer takes: a duration, or a curve in seconds; beyond timeoutSeconds it is a failure
    starts          the rules hold for the first so many starts of the container only

Answers are functions of the time and of the probe's number, so that a probe that will not fail for long needs nobody
who asks it (:meth:`Answers.next_doubt`).
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import yaml

from kemu.emulated.kubelet.usage import curves
from kemu.emulated.objects import times
from kemu.emulated.objects.conversion import yaml_texts
from kemu.emulated.objects.plain import Json
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS

PROBES = "kemu.dev/probes"

STARTUP, READINESS, LIVENESS = "startup", "readiness", "liveness"
KINDS = (STARTUP, READINESS, LIVENESS)
KEYS = ("succeedsAfter", "failsFrom", "failsFor", "every", "failsAbove", "failureRate", "latency", "starts")
RESOURCES = ("cpu", "memory")

_MILLISECOND_NS = SECOND_NS // 1000
_HORIZON = 4096
"""How many probes are looked ahead where usage or latency never settles."""
_WINDOWS = 256
"""How many windows of failures between two probes are passed over before it is looked at again."""


class Load(Protocol):
    """What the container uses, by seconds since its start."""

    def most(self, resource: str, first_s: int, last_s: int) -> int:
        """The most between two seconds, both included; exact where they are equal. Millicores, bytes."""
        ...

    def limit(self, resource: str) -> int | None:
        """Its limit. None: it has none."""
        ...


@dataclass(frozen=True, slots=True)
class Rules:
    """What the annotation says of one probe. Times in ns."""

    succeeds_after: int = 0
    fails_from: int | None = None
    fails_for: int | None = None
    every: int | None = None
    fails_above: tuple[tuple[str, int, bool], ...] = ()
    """Resource, amount or percentage of the limit, whether it is the latter."""
    failure_rate: float = 0.0
    latency: int | curves.Curve = 0
    """A curve is in milliseconds."""
    starts: int | None = None


SUCCEEDS = Rules()
_NONE: Mapping[str, Mapping[str, Rules]] = {}


class Answers:
    """Answers of one probe of one start of a container. Times are ns since that start; probes are numbered from 0."""

    __slots__ = ("_failing", "_load", "_next_failure", "_rules", "_seed", "output")

    def __init__(self, rules: Rules, start: int, load: Load, seed: str) -> None:
        """``start``: which start of the container this is, from 1. ``seed``: of its failures by chance."""
        self.output: str | None = None
        """What a failed probe has printed; None: as its handler would."""
        self._rules = rules if rules.starts is None or start <= rules.starts else SUCCEEDS
        self._load = load
        self._seed = f"{seed}/{start}"
        self._failing = 0
        self._next_failure = -1

    def latency_ns(self, at_ns: int) -> int:
        latency = self._rules.latency
        return latency if isinstance(latency, int) else latency.at(at_ns // SECOND_NS) * _MILLISECOND_NS

    def fails(self, at_ns: int, number: int) -> bool:
        """Whether that probe fails, however fast the answer comes."""
        rules = self._rules
        if rules is SUCCEEDS:
            return False
        if at_ns < rules.succeeds_after or self._is_in_window(at_ns):
            return True
        second = at_ns // SECOND_NS
        if any(self._is_above(one, second, second) for one in rules.fails_above):
            return True
        return rules.failure_rate > 0 and self._failure_from(number) == number

    def next_doubt(self, at_ns: int, period_ns: int, number: int, slowest_ns: int) -> int | None:
        """The probes at ``at_ns`` and every period from then on, of which the first has this number: how many
        certainly succeed, each with an answer within ``slowest_ns``. None: all of them."""
        rules = self._rules
        if rules is SUCCEEDS:
            return None
        if at_ns < rules.succeeds_after:
            return 0
        found = [
            self._search(functools.partial(self._is_above, one), at_ns, period_ns, None) for one in rules.fails_above
        ]
        if rules.fails_from is not None:
            found.append(self._next_window(at_ns, period_ns))
        if isinstance(rules.latency, int):
            if rules.latency > slowest_ns:
                return 0
        else:
            found.append(self._search(self._slower_than(slowest_ns), at_ns, period_ns, rules.latency.settled_s))
        if rules.failure_rate > 0:
            found.append(self._failure_from(number) - number)
        return min((one for one in found if one is not None), default=None)

    # --- windows -----------------------------------------------------------------------------------------------------

    def _is_in_window(self, at_ns: int) -> bool:
        rules = self._rules
        if rules.fails_from is None or at_ns < rules.fails_from:
            return False
        since_ns = at_ns - rules.fails_from
        if rules.every is not None:
            since_ns %= rules.every
        return rules.fails_for is None or since_ns < rules.fails_for

    def _next_window(self, at_ns: int, period_ns: int) -> int | None:
        rules = self._rules
        begin_ns, every = rules.fails_from, rules.every
        assert begin_ns is not None
        count = 0
        for _ in range(_WINDOWS):
            when_ns = at_ns + count * period_ns
            if self._is_in_window(when_ns):
                return count
            if when_ns > begin_ns:
                if every is None:
                    return None
                begin_ns += ((when_ns - begin_ns) // every + 1) * every
            count = -((at_ns - begin_ns) // period_ns)
        return count

    # --- usage and latency -------------------------------------------------------------------------------------------

    def _is_above(self, rule: tuple[str, int, bool], first_s: int, last_s: int) -> bool:
        resource, amount, is_share = rule
        if is_share:
            limit = self._load.limit(resource)
            return limit is not None and self._load.most(resource, first_s, last_s) * 100 > limit * amount
        return self._load.most(resource, first_s, last_s) > amount

    def _slower_than(self, slowest_ns: int) -> Any:
        latency = self._rules.latency
        assert not isinstance(latency, int)
        return lambda first_s, last_s: latency.most(first_s, last_s) * _MILLISECOND_NS > slowest_ns

    @staticmethod
    def _search(may_hold: Any, at_ns: int, period_ns: int, settled_s: int | None) -> int | None:
        """``settled_s``: nothing changes from that second on; None: that is not known."""
        if settled_s is None:
            last = _HORIZON
        else:
            last = max(0, -((at_ns - (settled_s + 1) * SECOND_NS) // period_ns))

        def may(first: int, end: int) -> bool:
            return bool(may_hold((at_ns + first * period_ns) // SECOND_NS, (at_ns + end * period_ns) // SECOND_NS))

        found = curves.first_second(may, 0, last)
        return found if found is not None or settled_s is not None else last

    # --- chance ------------------------------------------------------------------------------------------------------

    def _failure_from(self, number: int) -> int:
        """The first probe from this one on that fails by chance: the successes in between are geometric."""
        if number < self._next_failure - 1 and self._failing > 1:
            # Asked about the past: from the beginning.
            self._failing, self._next_failure = 0, -1
        rate = self._rules.failure_rate
        while self._next_failure < number:
            drawn = hashlib.blake2b(f"{self._seed}/{self._failing}".encode(), digest_size=8).digest()
            uniform = (int.from_bytes(drawn, "big") + 1) / (1 << 64)
            gap = 0 if rate >= 1 else min(int(math.log(uniform) / math.log1p(-rate)), 1 << 40)
            self._failing += 1
            self._next_failure += 1 + gap
        return self._next_failure


# From data ----------------------------------------------------------------------------------------------------------


class ProbesError(ValueError):
    """An annotation that cannot be. ``path`` leads to the mistake."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.message = message


def of(pod: core_v1_pb2.Pod) -> Mapping[str, Mapping[str, Rules]]:
    """By container and kind. An annotation that cannot be read counts as absent, as the API server takes any."""
    annotations = pod.metadata.annotations
    if not annotations or PROBES not in annotations:
        return _NONE
    text = annotations[PROBES]
    try:
        return _parse_text(text, pod.metadata.uid if "randomWalk" in text else "")
    except (ProbesError, yaml.YAMLError):
        return _NONE


@functools.lru_cache(256)
def _parse_text(text: str, seed: str) -> Mapping[str, Mapping[str, Rules]]:
    try:
        data = json.loads(text)
    except json.JSONDecodeError:
        data = yaml_texts.safe_load(text)
    return parse(data, seed)


def parse(data: Json, seed: str = "") -> Mapping[str, Mapping[str, Rules]]:
    """Raises ProbesError."""
    return {
        str(name): {
            kind: _rules(rules, f"{name}.{kind}", seed) for kind, rules in _mapping(of_one, str(name), KINDS).items()
        }
        for name, of_one in _mapping(data, "", None).items()
    }


def _rules(data: Json, path: str, seed: str) -> Rules:
    fields = _mapping(data, path, KEYS)
    for key, needs in (("failsFor", "failsFrom"), ("every", "failsFor")):
        if key in fields and needs not in fields:
            raise ProbesError(f"{path}.{key}", f"needs {needs}")
    duration = {
        key: _duration(fields[key], f"{path}.{key}", positive=key in ("failsFor", "every"))
        for key in ("succeedsAfter", "failsFrom", "failsFor", "every")
        if key in fields
    }
    if "every" in duration and duration["every"] <= duration["failsFor"]:
        raise ProbesError(f"{path}.every", "must be more than failsFor: the probe would never succeed again")
    above = _mapping(fields.get("failsAbove", {}), f"{path}.failsAbove", RESOURCES)
    starts = fields.get("starts")
    if starts is not None and (isinstance(starts, bool) or not isinstance(starts, int) or starts < 1):
        raise ProbesError(f"{path}.starts", f"must be a whole number of at least 1, not {starts!r}")
    rate = fields.get("failureRate", 0)
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1:
        raise ProbesError(f"{path}.failureRate", f"must be a probability between 0 and 1, not {rate!r}")
    return Rules(
        succeeds_after=duration.get("succeedsAfter", 0),
        fails_from=duration.get("failsFrom"),
        fails_for=duration.get("failsFor"),
        every=duration.get("every"),
        fails_above=tuple(_above(key, above[key], f"{path}.failsAbove.{key}") for key in RESOURCES if key in above),
        failure_rate=float(rate),
        latency=_latency(fields.get("latency", 0), f"{path}.latency", f"{seed}/{path}"),
        starts=starts,
    )


def _above(resource: str, data: Json, path: str) -> tuple[str, int, bool]:
    if isinstance(data, str) and (found := re.fullmatch(r"(\d{1,4})%", data)):
        return resource, int(found[1]), True
    try:
        constant = curves.parse(data, "", milli=resource == "cpu")
    except curves.CurveError as error:
        raise ProbesError(path, f"must be a share of the limit, such as 90%, or an amount: {error.message}") from None
    if not isinstance(constant, curves.Constant):
        raise ProbesError(path, "must be a share of the limit, such as 90%, or an amount")
    return resource, constant.value, False


def _latency(data: Json, path: str, seed: str) -> int | curves.Curve:
    if not isinstance(data, Mapping):
        return _duration(data, path)
    try:
        return curves.parse(data, "", seed, milli=True)
    except curves.CurveError as error:
        raise ProbesError(f"{path}.{error.path}" if error.path else path, error.message) from None


def _duration(data: Json, path: str, *, positive: bool = False) -> int:
    try:
        if isinstance(data, bool) or not isinstance(data, int | float | str):
            raise ValueError
        found = times.parse_duration(data) if isinstance(data, str) else round(data * SECOND_NS)
    except ValueError:
        raise ProbesError(path, f"must be a duration such as 10s, not {data!r}") from None
    if found < 0 or (positive and not found):
        raise ProbesError(path, "must be more than 0" if positive else "must not be negative")
    return found


def _mapping(data: Json, path: str, known: tuple[str, ...] | None) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise ProbesError(path, "must be a mapping")
    for key in data if known is not None else ():
        if known is not None and key not in known:
            raise ProbesError(f"{path}.{key}" if path else str(key), f"unknown; there are: {', '.join(known)}")
    return data
