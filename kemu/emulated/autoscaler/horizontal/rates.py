"""How fast the number of replicas may follow what is recommended: stabilization windows and scaling policies
(``normalizeDesiredReplicas`` and ``normalizeDesiredReplicasWithBehaviors`` of ``horizontal.go``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kemu.messages.k8s import autoscaling_v2_pb2
from kemu.runtime.env import SECOND_NS

UP_FACTOR, UP_LEAST = 2.0, 4.0
"""Without a behavior it may grow to twice its size at once, or to four (``scaleUpLimitFactor``, ``…Minimum``)."""
_MOST, _LEAST = 2**31 - 1, -(2**31)

READY = "ReadyForNewScale", "recommended size matches current size"
WITHIN = "DesiredWithinRange", "the desired count is within the acceptable range"
_LOWER = "recent recommendations were lower than current one, applying the lowest recent recommendation"
_HIGHER = "recent recommendations were higher than current one, applying the highest recent recommendation"
_TOO_FAST_UP = "ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate"
_TOO_MANY = "TooManyReplicas", "the desired replica count is more than the maximum replica count"
_TOO_FAST_DOWN = "ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate"
_TOO_FEW = "TooFewReplicas", "the desired replica count is less than the minimum replica count"


@dataclass(slots=True)
class _Recommendation:
    replicas: int
    at_ns: int


@dataclass(slots=True)
class _Change:
    """One scaling: by how many replicas."""

    replicas: int
    at_ns: int


class Decision(NamedTuple):
    """Conditions as reason and message; of AbleToScale it is True, of ScalingLimited as said."""

    replicas: int
    able: tuple[str, str]
    limited: bool
    limit: tuple[str, str]


@dataclass(slots=True)
class History:
    """What was recommended, and what was done, for one autoscaler."""

    recommendations: list[_Recommendation] = field(default_factory=list)
    ups: list[_Change] = field(default_factory=list)
    downs: list[_Change] = field(default_factory=list)

    def begin(self, replicas: int, now_ns: int) -> None:
        """Its first look (``recordInitialRecommendation``)."""
        if not self.recommendations:
            self.recommendations.append(_Recommendation(replicas, now_ns))

    def _recommend(self, replicas: int, now_ns: int, outdated: int | None) -> None:
        """``outdated``: the place of a recommendation that this one replaces; None: it is added."""
        if outdated is not None:
            self.recommendations[outdated] = _Recommendation(replicas, now_ns)
        else:
            self.recommendations.append(_Recommendation(replicas, now_ns))

    def decide(
        self,
        behavior: autoscaling_v2_pb2.HorizontalPodAutoscalerBehavior | None,
        current: int,
        desired: int,
        least: int,
        most: int,
        window_ns: int,
        now_ns: int,
    ) -> Decision:
        """``least``, ``most``: replicas. ``window_ns``: stabilization of scale-downs that say nothing of it."""
        if behavior is None:
            stable = self._stabilized(desired, window_ns, now_ns)
            why = READY if stable == desired else ("ScaleDownStabilized", _HIGHER)
            replicas, limit = _by_rules(current, stable, least, most)
        else:
            stable = self._stabilized_by_rules(behavior, current, desired, window_ns, now_ns)
            why = READY
            if stable != desired:
                why = ("ScaleUpStabilized", _LOWER) if desired >= current else ("ScaleDownStabilized", _HIGHER)
            replicas, limit = self._by_policies(behavior, current, stable, least, most, now_ns)
        return Decision(replicas, why, replicas != stable, limit)

    def _stabilized(self, desired: int, window_ns: int, now_ns: int) -> int:
        """``stabilizeRecommendation``."""
        highest, outdated = desired, None
        for index, one in enumerate(self.recommendations):
            if one.at_ns < now_ns - window_ns:
                outdated = index
            else:
                highest = max(highest, one.replicas)
        self._recommend(desired, now_ns, outdated)
        return highest

    def _stabilized_by_rules(
        self,
        behavior: autoscaling_v2_pb2.HorizontalPodAutoscalerBehavior,
        current: int,
        desired: int,
        window_ns: int,
        now_ns: int,
    ) -> int:
        """``stabilizeRecommendationWithBehaviors``."""
        up, down = desired, desired
        up_cutoff_ns = now_ns - behavior.scaleUp.stabilizationWindowSeconds * SECOND_NS
        if behavior.scaleDown.HasField("stabilizationWindowSeconds"):
            window_ns = behavior.scaleDown.stabilizationWindowSeconds * SECOND_NS
        down_cutoff_ns, outdated = now_ns - window_ns // SECOND_NS * SECOND_NS, None
        for index, one in enumerate(self.recommendations):
            if one.at_ns > up_cutoff_ns:
                up = min(up, one.replicas)
            if one.at_ns > down_cutoff_ns:
                down = max(down, one.replicas)
            if one.at_ns < up_cutoff_ns and one.at_ns < down_cutoff_ns:
                outdated = index
        self._recommend(desired, now_ns, outdated)
        return min(max(current, up), down)

    def _by_policies(
        self,
        behavior: autoscaling_v2_pb2.HorizontalPodAutoscalerBehavior,
        current: int,
        desired: int,
        least: int,
        most: int,
        now_ns: int,
    ) -> tuple[int, tuple[str, str]]:
        """``convertDesiredReplicasWithBehaviorRate``."""
        if desired > current:
            limit = max(current, self._limit(behavior.scaleUp, current, now_ns, up=True))
            allowed, why = (limit, _TOO_FAST_UP) if most > limit else (most, _TOO_MANY)
            if desired > allowed:
                return allowed, why
        elif desired < current:
            limit = min(current, self._limit(behavior.scaleDown, current, now_ns, up=False))
            allowed, why = (limit, _TOO_FAST_DOWN) if least < limit else (least, _TOO_FEW)
            if desired < allowed:
                return allowed, why
        return desired, WITHIN

    def _limit(self, rules: autoscaling_v2_pb2.HPAScalingRules, current: int, now_ns: int, *, up: bool) -> int:
        """``calculateScaleUpLimitWithScalingRules``, ``calculateScaleDownLimitWithBehaviors``."""
        if rules.selectPolicy == "Disabled":
            return current
        proposed = []
        for policy in rules.policies:
            since_ns = now_ns - policy.periodSeconds * SECOND_NS
            start = current - _total(self.ups, since_ns) + _total(self.downs, since_ns)
            sign = 1 if up else -1
            if policy.type == "Pods":
                proposed.append(start + sign * policy.value)
            elif up:
                proposed.append(math.ceil(float(start) * (1 + float(policy.value) / 100)))
            else:
                proposed.append(int(float(start) * (1 - float(policy.value) / 100)))
        takes_most = up != (rules.selectPolicy == "Min")
        if not proposed:
            return _LEAST if takes_most else _MOST
        return max(proposed) if takes_most else min(proposed)

    def scaled(
        self,
        behavior: autoscaling_v2_pb2.HorizontalPodAutoscalerBehavior | None,
        before: int,
        after: int,
        now_ns: int,
    ) -> None:
        """``storeScaleEvent``."""
        if behavior is None:
            return
        rules, changes = (behavior.scaleUp, self.ups) if after > before else (behavior.scaleDown, self.downs)
        longest_s = max((policy.periodSeconds for policy in rules.policies), default=0)
        outdated = [index for index, one in enumerate(changes) if one.at_ns < now_ns - longest_s * SECOND_NS]
        change = _Change(abs(after - before), now_ns)
        if outdated:
            changes[outdated[-1]] = change
        else:
            changes.append(change)


def _total(changes: Sequence[_Change], since_ns: int) -> int:
    """``getReplicasChangePerPeriod``."""
    return sum(one.replicas for one in changes if one.at_ns > since_ns)


def _by_rules(current: int, desired: int, least: int, most: int) -> tuple[int, tuple[str, str]]:
    """``convertDesiredReplicasWithRules``."""
    limit = int(max(UP_FACTOR * current, UP_LEAST))
    allowed, why = (limit, _TOO_FAST_UP) if most > limit else (most, _TOO_MANY)
    if desired < least:
        return least, _TOO_FEW
    if desired > allowed:
        return allowed, why
    return desired, WITHIN
