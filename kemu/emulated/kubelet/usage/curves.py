"""How much of something is used over time: constant, ramp, sine, steps, random walk, recorded.

A curve gives whole amounts at whole seconds since its origin (the start of a container, of a pod, of the run). It also
gives an upper bound within a span of time, so that the first second at which a sum of curves reaches a threshold is
found without trying each one: see :func:`first_second`.

As data (YAML or JSON; amounts are Kubernetes quantities, times Go durations or seconds):

    100Mi
    {ramp: {from: 100Mi, to: 1Gi, over: 5m, after: 30s}}
    {sine: {mean: 500Mi, amplitude: 200Mi, period: 10m, phase: 0s}}
    {steps: [{at: 0s, value: 100Mi}, {at: 2m, value: 1Gi}]}
    {randomWalk: {from: 500Mi, step: 20Mi, every: 10s, min: 0, max: 1Gi}}
    {trace: [{at: 0s, value: 100Mi}, {at: 60s, value: 300Mi}]}        # a straight line between two points
"""

from __future__ import annotations

import bisect
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from kemu.emulated.objects import times
from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.plain import Json

SECOND_NS = 1_000_000_000
_PART = 1024
"""Turns of a random walk from one mark to the next."""
KINDS = ("constant", "ramp", "sine", "steps", "randomWalk", "trace")


class CurveError(ValueError):
    """A curve that cannot be. ``path`` leads to the mistake from the top of the curve."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.message = message


class Curve(Protocol):
    def at(self, second: int) -> int:
        """The amount at a second since the origin, from 0 on."""
        ...

    def most(self, first: int, last: int) -> int:
        """No amount between these seconds (both included) is above this; exact where they are equal."""
        ...

    @property
    def settled_s(self) -> int | None:
        """From this second on it does not change any more; None: it may change for ever."""
        ...


class Constant:
    __slots__ = ("value",)
    settled_s = 0

    def __init__(self, value: int) -> None:
        self.value = value

    def at(self, second: int) -> int:
        return self.value

    def most(self, first: int, last: int) -> int:
        return self.value


class Ramp:
    """From one amount to another within ``over`` seconds, which begin after ``after`` seconds."""

    __slots__ = ("_after", "_from", "_over", "_to", "settled_s")

    def __init__(self, start: int, end: int, over: int, after: int) -> None:
        self._from, self._to, self._over, self._after = start, end, over, after
        self.settled_s = after + over

    def at(self, second: int) -> int:
        part, over = second - self._after, self._over
        if part >= over or not over:
            return self._to
        return self._from + (self._to - self._from) * part // over if part > 0 else self._from

    def most(self, first: int, last: int) -> int:
        return max(self.at(first), self.at(last))


class Sine:
    __slots__ = ("_amplitude", "_mean", "_period", "_phase")
    settled_s = None

    def __init__(self, mean: int, amplitude: int, period: int, phase: int) -> None:
        self._mean, self._amplitude, self._period, self._phase = mean, amplitude, period, phase

    def at(self, second: int) -> int:
        # Within one period, so that it repeats exactly.
        turn = (second + self._phase) % self._period / self._period
        return max(0, self._mean + round(self._amplitude * math.sin(2 * math.pi * turn)))

    def most(self, first: int, last: int) -> int:
        if last - first < 16:
            return max(self.at(second) for second in range(first, last + 1))
        return self._mean + self._amplitude


class Steps:
    """0 before the first of ``points`` (second, amount)."""

    __slots__ = ("_seconds", "_values", "settled_s")

    def __init__(self, points: Sequence[tuple[int, int]]) -> None:
        self._seconds = [second for second, _ in points]
        self._values = [value for _, value in points]
        self.settled_s = self._seconds[-1]

    def at(self, second: int) -> int:
        index = bisect.bisect_right(self._seconds, second)
        return self._values[index - 1] if index else 0

    def most(self, first: int, last: int) -> int:
        begin = bisect.bisect_right(self._seconds, first)
        end = bisect.bisect_right(self._seconds, last)
        return max([self.at(first), *self._values[begin:end]])


class Trace:
    """Straight lines between ``points`` (second, amount); the first and the last amount hold before and after."""

    __slots__ = ("_seconds", "_values", "settled_s")

    def __init__(self, points: Sequence[tuple[int, int]]) -> None:
        self._seconds = [second for second, _ in points]
        self._values = [value for _, value in points]
        self.settled_s = self._seconds[-1]

    def at(self, second: int) -> int:
        seconds, values = self._seconds, self._values
        index = bisect.bisect_right(seconds, second)
        if index in (0, len(seconds)):
            return values[max(index - 1, 0)]
        begin, end = seconds[index - 1], seconds[index]
        return values[index - 1] + (values[index] - values[index - 1]) * (second - begin) // (end - begin)

    def most(self, first: int, last: int) -> int:
        begin = bisect.bisect_right(self._seconds, first)
        end = bisect.bisect_right(self._seconds, last)
        return max([self.at(first), self.at(last), *self._values[begin:end]])


class RandomWalk:
    """Every ``every`` seconds up to ``step`` up or down, evenly, held between ``least`` and ``greatest``.

    ``seed`` alone decides about the way that it takes. Only the latest part of the way is kept, and a mark after every
    ``_PART`` turns, from which any part can be found again.
    """

    __slots__ = ("_begin", "_every", "_greatest", "_least", "_marks", "_seed", "_step", "_way")
    settled_s = None

    def __init__(self, start: int, step: int, every: int, least: int, greatest: int, seed: str) -> None:
        self._step, self._every, self._least, self._greatest = step, every, least, greatest
        self._seed = seed
        self._marks = [min(max(start, least), greatest)]
        self._begin = 0
        """The turn of the first amount in ``_way``."""
        self._way = self._marks.copy()

    def at(self, second: int) -> int:
        turn = second // self._every
        if not self._begin <= turn < self._begin + len(self._way):
            self._go_to(turn)
        return self._way[turn - self._begin]

    def _go_to(self, turn: int) -> None:
        mark = min(turn // _PART, len(self._marks) - 1)
        if not self._begin <= mark * _PART < self._begin + len(self._way):
            self._begin, self._way = mark * _PART, [self._marks[mark]]
        way = self._way
        for number in range(self._begin + len(way), turn + 1):
            drawn = hashlib.blake2b(f"{self._seed}/{number}".encode(), digest_size=8).digest()
            move = int.from_bytes(drawn, "big") % (2 * self._step + 1) - self._step
            way.append(min(max(way[-1] + move, self._least), self._greatest))
            if number == len(self._marks) * _PART:
                self._marks.append(way[-1])
            if len(way) > 2 * _PART:
                del way[:_PART]
                self._begin += _PART

    def most(self, first: int, last: int) -> int:
        # The part of the way that is known, or a bound.
        turns = last // self._every - first // self._every
        return min(self.at(first) + turns * self._step, self._greatest)


# From data ----------------------------------------------------------------------------------------------------------


def parse(data: Json, path: str = "", seed: str = "", *, milli: bool = False) -> Curve:
    """``milli``: amounts become thousandths (cpu). ``seed``: of a random walk. Raises CurveError."""
    reader = _Reader(seed, milli)
    if not isinstance(data, Mapping):
        return Constant(reader.amount(data, path))
    if len(data) != 1 or next(iter(data)) not in KINDS:
        found = ", ".join(str(key) for key in data)
        raise CurveError(path, f"must be an amount or one of {', '.join(KINDS)}, not {found or 'nothing'}")
    ((kind, detail),) = data.items()
    made: Curve = getattr(reader, f"read_{kind}")(detail, f"{path}.{kind}" if path else str(kind))
    return made


class _Reader:
    def __init__(self, seed: str, milli: bool) -> None:
        self._seed = seed
        self._milli = milli

    def amount(self, data: Json, path: str) -> int:
        if isinstance(data, bool) or not isinstance(data, int | float | str):
            raise CurveError(path, f"must be an amount such as 100Mi, not {data!r}")
        try:
            quantity = quantities.parse(str(data))
        except ValueError:
            raise CurveError(path, f"{data!r} is not an amount, such as 100Mi") from None
        found = quantity.milli if self._milli else quantity.value
        if found < 0:
            raise CurveError(path, f"must not be negative: {data}")
        return found

    def seconds(self, data: Json, path: str, *, positive: bool = False) -> int:
        """Whole ones."""
        if isinstance(data, str):
            try:
                found = times.parse_duration(data) / SECOND_NS
            except ValueError:
                raise CurveError(path, f"{data!r} is not a duration, such as 10s or 1m30s") from None
        elif isinstance(data, bool) or not isinstance(data, int | float):
            raise CurveError(path, f"must be a duration such as 5m, not {data!r}")
        else:
            found = float(data)
        if found < 0 or found != int(found):
            raise CurveError(path, f"must be whole seconds: {data}")
        if positive and not found:
            raise CurveError(path, "must be more than 0")
        return int(found)

    def fields(self, data: Json, path: str, required: Sequence[str], optional: Mapping[str, Any]) -> dict[str, Any]:
        if not isinstance(data, Mapping):
            raise CurveError(path, "must be a mapping")
        for key in data:
            if key not in required and key not in optional:
                raise CurveError(f"{path}.{key}", f"unknown field; there are: {', '.join([*required, *optional])}")
        for key in required:
            if key not in data:
                raise CurveError(path, f"{key} is missing")
        return {**optional, **data}

    def points(self, data: Json, path: str) -> list[tuple[int, int]]:
        if not isinstance(data, Sequence) or isinstance(data, str) or not data:
            raise CurveError(path, "must be a list of {at, value}")
        found: list[tuple[int, int]] = []
        for index, item in enumerate(data):
            place = f"{path}[{index}]"
            point = self.fields(item, place, ("at", "value"), {})
            second = self.seconds(point["at"], f"{place}.at")
            if found and second <= found[-1][0]:
                raise CurveError(f"{place}.at", "must be later than the one before")
            found.append((second, self.amount(point["value"], f"{place}.value")))
        return found

    def read_constant(self, data: Json, path: str) -> Curve:
        return Constant(self.amount(data, path))

    def read_ramp(self, data: Json, path: str) -> Curve:
        fields = self.fields(data, path, ("from", "to", "over"), {"after": 0})
        return Ramp(
            self.amount(fields["from"], f"{path}.from"),
            self.amount(fields["to"], f"{path}.to"),
            self.seconds(fields["over"], f"{path}.over"),
            self.seconds(fields["after"], f"{path}.after"),
        )

    def read_sine(self, data: Json, path: str) -> Curve:
        fields = self.fields(data, path, ("mean", "amplitude", "period"), {"phase": 0})
        return Sine(
            self.amount(fields["mean"], f"{path}.mean"),
            self.amount(fields["amplitude"], f"{path}.amplitude"),
            self.seconds(fields["period"], f"{path}.period", positive=True),
            self.seconds(fields["phase"], f"{path}.phase"),
        )

    def read_steps(self, data: Json, path: str) -> Curve:
        return Steps(self.points(data, path))

    def read_trace(self, data: Json, path: str) -> Curve:
        return Trace(self.points(data, path))

    def read_randomWalk(self, data: Json, path: str) -> Curve:
        fields = self.fields(data, path, ("from", "step", "every", "max"), {"min": 0})
        least, greatest = (self.amount(fields[key], f"{path}.{key}") for key in ("min", "max"))
        if least > greatest:
            raise CurveError(f"{path}.min", "is more than max")
        return RandomWalk(
            self.amount(fields["from"], f"{path}.from"),
            self.amount(fields["step"], f"{path}.step"),
            self.seconds(fields["every"], f"{path}.every", positive=True),
            least,
            greatest,
            self._seed,
        )


# Search -------------------------------------------------------------------------------------------------------------


def first_second(may_hold: Callable[[int, int], bool], begin: int, end: int) -> int | None:
    """The first second from ``begin`` to ``end`` (both included) at which something holds.

    ``may_hold(first, last)`` says whether it may hold somewhere in a span, and is exact where they are equal. The spans
    grow as long as nothing can be in them, and are halved where something may be.
    """
    second, width = begin, 1
    while second <= end:
        last = min(second + width - 1, end)
        if not may_hold(second, last):
            second, width = last + 1, 2 * width
        elif last == second:
            return second
        else:
            width = (last - second + 1) // 2
    return None
