"""The fields of ResourceQuotas and LimitRanges."""

from __future__ import annotations

from kemu.emulated.objects.fields.sorts import Reason, Sort, message

ACCEPTED = ("ResourceQuota", "LimitRange")
"""Kinds that scenarios may hold."""

SORTS: dict[str, Sort] = {
    **message("ResourceQuota", parts="metadata spec", harmless={Reason.SERVER: "status"}),
    **message("ResourceQuotaSpec", acts="hard scopes", parts="scopeSelector"),
    **message("ScopeSelector", parts="matchExpressions"),
    **message("ScopedResourceSelectorRequirement", acts="scopeName operator values"),
    **message("LimitRange", parts="metadata spec"),
    **message("LimitRangeSpec", parts="limits"),
    **message("LimitRangeItem", acts="type max min default defaultRequest maxLimitRequestRatio"),
}
