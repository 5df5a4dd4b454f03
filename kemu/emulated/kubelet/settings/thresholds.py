"""Eviction thresholds: how a KubeletConfiguration states them, and their amounts on a node.

Mirrors ``pkg/kubelet/eviction`` (``ParseThresholdConfig``, ``UpdateContainerFsThresholds``) and its ``api``
(``GetThresholdQuantity``). Read by
:mod:`kemu.emulated.kubelet.settings.kubelet_configurations` and :mod:`kemu.emulated.kubelet.pressure.eviction`.
"""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from kemu.emulated.objects import times
from kemu.emulated.objects.amounts import floats, quantities

MEMORY = "memory.available"
ALLOCATABLE_MEMORY = "allocatableMemory.available"
NODEFS, NODEFS_INODES = "nodefs.available", "nodefs.inodesFree"
IMAGEFS, IMAGEFS_INODES = "imagefs.available", "imagefs.inodesFree"
CONTAINERFS, CONTAINERFS_INODES = "containerfs.available", "containerfs.inodesFree"
PIDS = "pid.available"

SIGNALS = (
    MEMORY,
    ALLOCATABLE_MEMORY,
    NODEFS,
    NODEFS_INODES,
    IMAGEFS,
    IMAGEFS_INODES,
    CONTAINERFS,
    CONTAINERFS_INODES,
    PIDS,
)
DEFAULT_HARD = {
    MEMORY: "100Mi",
    NODEFS: "10%",
    NODEFS_INODES: "5%",
    IMAGEFS: "15%",
    IMAGEFS_INODES: "5%",
}
PODS_ENFORCED = "pods"
"""In ``enforceNodeAllocatable``: what the pods use together is limited."""

_IGNORED = ("0%", "100%")


class ThresholdError(ValueError):
    """The configuration of the thresholds is wrong. ``category`` says in what way, for programs."""

    def __init__(self, category: str, text: str) -> None:
        super().__init__(text)
        self.category = category


@dataclass(frozen=True, slots=True)
class Amount:
    """An absolute quantity, or a fraction of the capacity."""

    quantity: quantities.Quantity | None = None
    fraction: float = 0.0
    """Where there is no quantity; a 32-bit float."""

    def of(self, capacity: int) -> quantities.Quantity:
        """In bytes, inodes or processes; ``capacity`` in the same."""
        if self.quantity is not None:
            return self.quantity
        return quantities.Quantity(
            _truncated(float(capacity) * self.fraction) * quantities.NANO, quantities.Format.BINARY_SI
        )


@dataclass(frozen=True, slots=True)
class Threshold:
    """Less than ``value`` available for at least the grace period: pods are evicted until there is the minimum reclaim
    more than that."""

    signal: str
    value: Amount
    grace_ns: int = 0
    minimum_reclaim: Amount | None = None
    active: bool = True
    """False: a placeholder that is never met."""

    @property
    def is_hard(self) -> bool:
        """A soft threshold without a grace period is a hard one from then on."""
        return self.grace_ns == 0


@dataclass(frozen=True, slots=True)
class Layout:
    """How the node's disks are divided."""

    dedicated_imagefs: bool = False
    """Images, and with them the writable layers, lie on a file system of their own."""
    split: bool = False
    """Images alone do: writable layers lie with the rest."""


def parse(
    hard: Mapping[str, str],
    soft: Mapping[str, str],
    soft_grace_period: Mapping[str, str],
    minimum_reclaim: Mapping[str, str],
    enforce_node_allocatable: Sequence[str] = (),
) -> tuple[Threshold, ...]:
    """The fields ``evictionHard``, ``evictionSoft`` and so on of a KubeletConfiguration. Raises ThresholdError."""
    found = _statements(hard)
    soft_found = _statements(soft)
    graces = {signal: _grace_ns(signal, soft_grace_period[signal]) for signal in sorted(soft_grace_period)}
    reclaims = {signal: _reclaim(signal, minimum_reclaim[signal]) for signal in sorted(minimum_reclaim)}
    for threshold in soft_found:
        if threshold.signal not in graces:
            raise ThresholdError(
                "missing-grace-period",
                f"grace period must be specified for the soft eviction threshold {threshold.signal}",
            )
        found.append(replace(threshold, grace_ns=graces[threshold.signal]))
    found = [replace(threshold, minimum_reclaim=reclaims.get(threshold.signal)) for threshold in found]
    if PODS_ENFORCED in enforce_node_allocatable:
        found += [
            replace(threshold, signal=ALLOCATABLE_MEMORY)
            for threshold in found
            if threshold.signal == MEMORY and threshold.is_hard
        ]
    return tuple(found)


def with_container_filesystem(
    thresholds: Iterable[Threshold], layout: Layout
) -> tuple[tuple[Threshold, ...], list[Threshold]]:
    """The thresholds and those of containerfs, which follow from where writable layers lie; then those that were
    configured and are replaced."""
    all_of_them, configured = _with_container_filesystem(tuple(thresholds), layout)
    return all_of_them, [*configured]


@functools.lru_cache(256)
def _with_container_filesystem(
    thresholds: tuple[Threshold, ...], layout: Layout
) -> tuple[tuple[Threshold, ...], tuple[Threshold, ...]]:
    found = list(thresholds)
    configured = [threshold for threshold in found if threshold.signal in (CONTAINERFS, CONTAINERFS_INODES)]
    nodefs = layout.split or not layout.dedicated_imagefs
    sources = {
        CONTAINERFS: NODEFS if nodefs else IMAGEFS,
        CONTAINERFS_INODES: NODEFS_INODES if nodefs else IMAGEFS_INODES,
    }
    for signal, source in sources.items():
        for is_hard in (True, False):
            place, copied = None, Threshold(signal, Amount(), active=False)
            for index, threshold in enumerate(found):
                # Of several that count as hard, the last.
                if threshold.is_hard == is_hard and threshold.active:
                    if threshold.signal == source:
                        copied = replace(threshold, signal=signal)
                    elif threshold.signal == signal:
                        place = index
            if place is None:
                found.append(copied)
            else:
                found[place] = copied
    return tuple(found), tuple(configured)


def _statements(statements: Mapping[str, str]) -> list[Threshold]:
    found = []
    for signal in sorted(statements):
        amount = _statement(signal, statements[signal])
        if amount is not None:
            found.append(Threshold(signal, amount))
    return found


def _statement(signal: str, text: str) -> Amount | None:
    _check_signal(signal)
    if text in _IGNORED:
        return None
    if text.endswith("%"):
        fraction = _percentage(text)
        if fraction < 0:
            raise ThresholdError("negative-percentage", f"eviction percentage threshold {signal} must be >= 0%: {text}")
        if fraction > 1:
            raise ThresholdError(
                "percentage-above-100", f"eviction percentage threshold {signal} must be <= 100%: {text}"
            )
        return Amount(fraction=fraction)
    quantity = _quantity(text)
    if quantity.nano <= 0:
        raise ThresholdError("non-positive-threshold", f"eviction threshold {signal} must be positive: {text}")
    return Amount(quantity)


def _reclaim(signal: str, text: str) -> Amount:
    _check_signal(signal)
    if text.endswith("%"):
        fraction = _percentage(text)
        if fraction <= 0:
            raise ThresholdError(
                "non-positive-minimum-reclaim-percentage",
                f"eviction percentage minimum reclaim {signal} must be positive: {text}",
            )
        return Amount(fraction=fraction)
    quantity = _quantity(text)
    if quantity.nano < 0:
        raise ThresholdError("negative-minimum-reclaim", f"negative eviction minimum reclaim specified for {signal}")
    return Amount(quantity)


def _grace_ns(signal: str, text: str) -> int:
    _check_signal(signal)
    try:
        grace_ns = times.parse_duration(text)
    except ValueError as error:
        raise ThresholdError("bad-duration", f"eviction grace period of {signal}: {error}") from error
    if grace_ns < 0:
        raise ThresholdError(
            "negative-grace-period", f"invalid eviction grace period specified: {text}, must be a positive value"
        )
    return grace_ns


def _check_signal(signal: str) -> None:
    if signal not in SIGNALS:
        raise ThresholdError(
            "unsupported-signal", f"unsupported eviction signal {signal!r}; there are {', '.join(SIGNALS)}"
        )


def _quantity(text: str) -> quantities.Quantity:
    try:
        return quantities.parse(text)
    except ValueError as error:
        raise ThresholdError("bad-quantity", str(error)) from error


# Percentages: 32-bit floats, as Go reads them ------------------------------------------------------------------------

_DECIMAL = re.compile(r"([+-]?)([0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE]([+-]?[0-9]+))?", re.ASCII)
_HEX = re.compile(r"([+-]?)0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP]([+-]?[0-9]+)", re.ASCII)
_UNDERSCORE = re.compile(r"(?<=[0-9])_(?=[0-9])", re.ASCII)
_MAX_EXPONENT = 400
"""Beyond it, a number of ordinary length is 0 or too large in 32 bits."""
_MIN_INT64 = -(2**63)


def _percentage(text: str) -> float:
    number = _UNDERSCORE.sub("", text.rstrip("%"))
    unsigned = number.lower().lstrip("+-") if number[:2] not in ("++", "--", "+-", "-+") else ""
    if unsigned in ("inf", "infinity"):
        return float("-inf") if number.startswith("-") else float("inf")
    if number.lower() == "nan":
        return float("nan")
    try:
        value = _nearest_32_bits(_exact(number))
    except (ValueError, OverflowError) as error:
        raise ThresholdError("bad-percentage", f"{text!r} is not a percentage, such as 5% or 12.5%") from error
    if value == 0 and number.startswith("-"):
        return -0.0
    return floats.to_32_bits(value / 100.0)


def _exact(text: str) -> Fraction:
    """Raises ValueError; OverflowError where 32 bits cannot hold it."""
    match, base, radix = _DECIMAL.fullmatch(text), 10, 10
    if match is None:
        match, base, radix = _HEX.fullmatch(text), 2, 16
    if match is None:
        raise ValueError(text)
    whole, _, fraction = match[2].partition(".")
    digits = int(whole + fraction, radix)
    exponent = int(match[3] or "0")
    if digits == 0:
        return Fraction(0)
    if abs(exponent) > _MAX_EXPONENT + 4 * len(match[2]):
        if exponent > 0:
            raise OverflowError(text)
        return Fraction(0)
    value = Fraction(digits, radix ** len(fraction)) * Fraction(base) ** exponent
    return -value if match[1] == "-" else value


def _nearest_32_bits(exact: Fraction) -> float:
    """The nearest 32-bit float. Raises OverflowError."""
    near = float(exact)
    if Fraction(near) != exact and struct.unpack("<Q", struct.pack("<d", near))[0] & 0x1FFF_FFFF == 0x1000_0000:
        # The nearest 64-bit float lies halfway between two of 32 bits; the number itself does not.
        bits = struct.unpack("<Q", struct.pack("<d", near))[0]
        bits += 1 if abs(exact) > abs(Fraction(near)) else -1
        near = struct.unpack("<d", struct.pack("<Q", bits))[0]
    return floats.to_32_bits(near)


def format_fraction(fraction: float) -> str:
    """The shortest text that stands for this 32-bit float."""
    for digits in range(1, 10):
        text = f"{fraction:.{digits}g}"
        if float(text) == fraction or floats.to_32_bits(float(text)) == fraction:
            return text
    return repr(fraction)


def _truncated(number: float) -> int:
    """Towards zero; what an int64 cannot hold becomes the least one, as on amd64."""
    if number != number or not -(2.0**63) <= number < 2.0**63:
        return _MIN_INT64
    return int(number)
