"""The fields of volumes, claims and the kinds of storage.k8s.io."""

from __future__ import annotations

from kemu.objects.fields.sorts import Sort

ACCEPTED: tuple[str, ...] = ()
"""Kinds that scenarios may hold."""

SORTS: dict[str, Sort] = {}
