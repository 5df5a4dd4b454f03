"""The fields of Jobs and CronJobs."""

from __future__ import annotations

from kemu.objects.fields.sorts import Sort

ACCEPTED: tuple[str, ...] = ()
"""Kinds that scenarios may hold."""

SORTS: dict[str, Sort] = {}
