"""The managed fields of one kind: what an update and an apply make of them (``managedfields.FieldManager``).

The layers of the original, from the outside: versions are checked, kubectl's annotation ``last-applied-configuration``
is kept in step and its fields are taken over, objects that were not tracked become so, the number of entries is
limited, times are set, what no manager may own is stripped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from kemu import errors
from kemu.emulated.objects import plain
from kemu.emulated.objects.caches import text_cache
from kemu.emulated.objects.conversion import go_structs
from kemu.emulated.objects.managed_fields import entries, fieldsets, resets, schemas, updaters, values
from kemu.emulated.objects.managed_fields.entries import APPLY, UPDATE, Entry, Times
from kemu.emulated.objects.managed_fields.fieldsets import FieldSet, Path
from kemu.emulated.objects.managed_fields.updaters import Conflicts, Identity, Managed, Managers
from kemu.errors import Cause

MAX_UPDATERS = 10
"""More entries of updates than these are merged, the oldest first (``DefaultMaxUpdateManagers``)."""
ANCIENT, BEFORE_FIRST_APPLY, UNKNOWN = "ancient-changes", "before-first-apply", "unknown"
KUBECTL = "kubectl"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
MAX_ANNOTATION_BYTES = 256 * 1024

_SELF = Identity("current-operation", UPDATE, "", "")

_STRIPPED = fieldsets.of(
    [
        ("f:apiVersion",),
        ("f:kind",),
        ("f:metadata",),
        *(
            ("f:metadata", "f:" + name)
            for name in (
                "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation",
                "managedFields", "resourceVersion",
            )
        ),
    ]
)  # fmt: skip
"""What no manager may own (``stripMetaManager``)."""


@text_cache(4096)
def name_of(field_manager: str, user_agent: str) -> str:
    """Who writes, by the options of a request: a manager that it names, or the client (``managerOrUserAgent``)."""
    if field_manager:
        return field_manager
    prefix = user_agent.partition("/")[0]
    kept = "".join(letter for letter in prefix if letter.isprintable())
    return kept.encode()[:128].decode(errors="ignore")


@lru_cache(None)
def of(api_version: str, kind: str, subresource: str) -> FieldManager:
    """That of a kind's objects, for one way to them. Raises KeyError."""
    name = schemas.find(api_version, kind)
    if name is None:
        raise KeyError(f"{api_version} {kind}")
    return FieldManager(name, api_version, kind, subresource)


@dataclass(frozen=True, slots=True)
class FieldManager:
    type: str | schemas.Type
    """A type, or its name for :func:`.schemas.resolve`."""
    api_version: str
    kind: str
    subresource: str
    reset: updaters.Filter | None = None
    """From a set of fields to those that a write does not reset; None: what the table says of the kind."""
    others: tuple[str, ...] = ()
    """API versions in which the kind is served as well."""
    versions: updaters.Versions | None = None
    """What makes objects of these versions; None: they have the same fields."""

    def _home(self) -> updaters.Home:
        return updaters.Home(self._resolved(), self.api_version, self.others, self.versions)

    def _resolved(self) -> schemas.Type:
        return schemas.resolve(self.type) if isinstance(self.type, str) else self.type

    def _keep(self) -> updaters.Filter:
        return self.reset or resets.of(self.kind, self.subresource)

    # --- update -------------------------------------------------------------------------------------------------------

    def update(
        self,
        old: Mapping[str, Any] | None,
        new: dict[str, Any],
        manager: str,
        now: str,
        empties: Iterable[go_structs.Path] = (),
    ) -> list[Entry]:
        """The entries after ``manager`` has made ``new`` of ``old``; None for ``old``: it creates the object.

        Both are complete manifests, with their entries. ``new`` comes as the client sent it, patched and with defaults.
        ``empties``: see :func:`.schemas.stated_empties`.
        """
        sent = entries_of(new)
        managed, when = self._managed(entries_of(old) if old is not None else [], sent)
        is_new = old is None or not (old.get("metadata") or {}).get("uid")
        if not managed and not is_new:
            # Who is not tracked yet becomes so by an apply (skipNonAppliedManager).
            return []
        try:
            typed = _with_empties(self._typed(new), empties)
            managed, when = self._updated(self._empty() if old is None else old, typed, managed, when, manager, now)
        except ValueError:
            return []  # UpdateNoErrors
        return entries.encode(managed, when)

    def _managed(self, live: list[Entry], sent: list[Entry]) -> tuple[Managers, Times]:
        """Where the state begins: with what a client sends, if it sends something (``decodeLiveOrNew``)."""
        if not self.subresource:
            if len(sent) == 1 and not sent[0]:
                return {}, {}
            try:
                managed, when = entries.decode(sent)
                if managed:
                    return managed, when
            except ValueError:
                pass
        try:
            return entries.decode(live)
        except ValueError:
            return {}, {}

    def _updated(
        self, old: Mapping[str, Any], new: dict[str, Any], managed: Managers, when: Times, manager: str, now: str
    ) -> tuple[Managers, Times]:
        """``new``: as the Go types have it."""
        by = Identity(manager or UNKNOWN, UPDATE, self.api_version, self.subresource)
        managed = updaters.update(self._home(), self._typed(old), new, managed, _SELF, self._keep())
        managed = _stripped(managed, _SELF)
        mine = managed.pop(_SELF, None)
        if mine is not None:
            previous = managed.get(by)
            fields = fieldsets.union(mine.fields, previous.fields) if previous is not None else mine.fields
            managed[by] = Managed(fields, mine.api_version, mine.applied)
            when = {**when, by: now}
        return _capped(managed, when)

    # --- apply --------------------------------------------------------------------------------------------------------

    def apply(
        self, live: dict[str, Any] | None, config: dict[str, Any], manager: str, now: str, *, force: bool
    ) -> dict[str, Any]:
        """The object after ``manager`` has applied ``config``, with its entries. ``live``: None for a new object.

        Raises :class:`kemu.errors.ApiError`.
        """
        found = config.get("apiVersion", ""), config.get("kind", "")
        if found != (self.api_version, self.kind):
            raise errors.BadRequest(f"invalid object type: {_kind_text(*map(str, found))}")
        try:
            managed, when = entries.decode(entries_of(live) if live is not None else [])
        except ValueError as error:
            raise errors.ApiError(f"failed to decode managed fields: {error}") from None
        state = live if live is not None else self._empty()
        try:
            new, managed, when = self._applied_with_last(state, config, managed, when, manager, now, force=force)
        except Conflicts as error:
            raise _conflict(error.found) from None
        metadata = new.get("metadata")
        if not isinstance(metadata, dict):
            metadata = new["metadata"] = {}
        if manager == KUBECTL and (metadata.get("annotations") or {}).get(LAST_APPLIED):
            _keep_last_applied(metadata["annotations"], config)
        written = entries.encode(managed, when)
        metadata.pop("managedFields", None)
        if written:
            metadata["managedFields"] = written
        return new

    def _applied_with_last(
        self,
        live: dict[str, Any],
        config: dict[str, Any],
        managed: Managers,
        when: Times,
        manager: str,
        now: str,
        *,
        force: bool,
    ) -> tuple[dict[str, Any], Managers, Times]:
        """kubectl may take what it once applied on the client's side (``lastAppliedManager``)."""
        try:
            return self._applied(live, config, managed, when, manager, now, force=force)
        except Conflicts as error:
            if manager != KUBECTL:
                raise
            try:
                allowed = self._last_applied(live)
            except ValueError:
                raise error from None
            left = [(who, path) for who, path in error.found if not fieldsets.has(allowed, path)]
            if left:
                raise Conflicts(left) from None
        return self._applied(live, config, managed, when, manager, now, force=True)

    def _applied(
        self,
        live: dict[str, Any],
        config: dict[str, Any],
        managed: Managers,
        when: Times,
        manager: str,
        now: str,
        *,
        force: bool,
    ) -> tuple[dict[str, Any], Managers, Times]:
        if not managed:
            # What the object has already belongs to its maker (skipNonAppliedManager).
            managed, when = self._updated(self._empty(), live, managed, when, BEFORE_FIRST_APPLY, now)
        by = Identity(manager or UNKNOWN, APPLY, "", self.subresource)
        if "managedFields" in _metadata(config):
            raise errors.BadRequest("metadata.managedFields must be nil")
        try:
            values.check(self._resolved(), config)
        except ValueError as error:
            raise errors.ApiError(f"failed to create typed patch object ({describe(config)}): {error}") from None
        before = self._typed(live)
        try:
            new, managed = updaters.apply(self._home(), before, config, managed, by, self._keep(), force=force)
        except updaters.Unconverted as error:
            raise errors.ApiError(str(error)) from None
        except values.Mistyped as error:
            raise errors.ApiError(f"failed to merge config: {error}") from None
        managed = _stripped(managed, by)
        if new == before:
            return plain.copied(live), managed, when
        return plain.copied(new), managed, {**when, by: now}

    def _last_applied(self, live: dict[str, Any]) -> FieldSet:
        """Fields of the annotation that are still as it says. Raises ValueError."""
        text = ((live.get("metadata") or {}).get("annotations") or {}).get(LAST_APPLIED)
        if not text:
            raise ValueError("no last applied annotation")
        last = json.loads(text)
        if not isinstance(last, dict) or last.get("apiVersion") != self.api_version:
            raise ValueError("expected version of last applied to match live object")
        kind = self._resolved()
        values.check(kind, last)
        comparison = values.compare(kind, last, self._typed(live))
        found = values.fields_of(kind, last)
        for changed in (comparison.modified, comparison.added, comparison.removed):
            found = fieldsets.difference(found, changed)
        return found

    # --- common -------------------------------------------------------------------------------------------------------

    def _empty(self) -> dict[str, Any]:
        return {"apiVersion": self.api_version, "kind": self.kind}

    def _typed(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """As the Go types have it, without its entries."""
        found = dict(manifest)
        if isinstance(self.type, str):
            found = cast(dict[str, Any], schemas.as_go_writes(self.type, manifest))
        metadata = found.get("metadata")
        if metadata and "managedFields" in metadata:
            found["metadata"] = {name: value for name, value in metadata.items() if name != "managedFields"}
        return found


def _with_empties(manifest: dict[str, Any], empties: Iterable[go_structs.Path]) -> dict[str, Any]:
    """``manifest``, as Go writes it, with an empty list where it has null for a list or map that is stated: which of
    them makes no difference. Lists are left alone: what stands in them decides nothing."""
    for path in empties:
        steps = [str(step) for step in path if isinstance(step, str)]
        holders = [manifest]
        for step in steps[:-1]:
            inner = holders[-1].get(step)
            if isinstance(inner, dict):
                holders.append(inner)
        if len(steps) == len(holders) == len(path) and holders[-1].get(steps[-1], "") is None:
            made: Any = []
            for step, holder in zip(reversed(steps), reversed(holders), strict=True):
                made = {**holder, step: made}
            manifest = made
    return manifest


def describe(manifest: Mapping[str, Any]) -> str:
    """Which object it is, as errors say it (``objectGVKNN``)."""
    metadata = _metadata(manifest)
    named = (metadata.get(key, "") for key in ("namespace", "name"))
    what = _kind_text(manifest.get("apiVersion", ""), manifest.get("kind", ""))
    return f"{'/'.join(one if isinstance(one, str) else '' for one in named)}; {what}"


def _metadata(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Of an object that nobody has checked: nothing where it is no mapping, as of Go's ``Unstructured``."""
    found = manifest.get("metadata")
    return found if isinstance(found, dict) else {}


def entries_of(manifest: Mapping[str, Any]) -> list[Entry]:
    found: list[Entry] = (manifest.get("metadata") or {}).get("managedFields") or []
    return found


def _stripped(managed: Managers, by: Identity) -> Managers:
    one = managed.get(by)
    if one is None:
        return managed
    fields = fieldsets.difference(one.fields, _STRIPPED)
    found = {who: other for who, other in managed.items() if who != by}
    if fields:
        found[by] = Managed(fields, one.api_version, one.applied)
    return found


def _capped(managed: Managers, when: Times) -> tuple[Managers, Times]:
    """The oldest updates become one entry where there are too many (``capManagersManager``)."""
    oldest = [who for who, one in managed.items() if not one.applied]
    if len(oldest) <= MAX_UPDATERS:
        return managed, when
    oldest.sort(key=lambda who: (entries.seconds(when.get(who)), entries.identifier(who).encode()))
    managed, when = dict(managed), dict(when)
    left = len(oldest)
    first: dict[str, Identity] = {}
    for who in oldest:
        if left <= MAX_UPDATERS:
            break
        one = managed[who]
        bucket = Identity(ANCIENT, UPDATE, one.api_version, "")
        if one.api_version not in first:
            first[one.api_version] = who
            continue
        if bucket not in managed:
            managed[bucket] = managed.pop(first[one.api_version])
        managed[bucket] = Managed(fieldsets.union(one.fields, managed[bucket].fields), one.api_version, one.applied)
        del managed[who]
        left -= 1
        if who in when:
            when[bucket] = when[who]
        else:
            when.pop(bucket, None)
    return managed, when


def _keep_last_applied(annotations: dict[str, Any], config: dict[str, Any]) -> None:
    """``lastAppliedUpdater``: the annotation says what was applied."""
    applied = plain.copied(config)
    metadata = applied.get("metadata")
    if isinstance(metadata, dict) and isinstance(metadata.get("annotations"), dict):
        metadata["annotations"].pop(LAST_APPLIED, None)
    text = json.dumps(applied, separators=(",", ":"), sort_keys=True, ensure_ascii=False) + "\n"
    size = sum(len(name.encode()) + len(str(value).encode()) for name, value in annotations.items())
    size += len(text.encode()) - len(str(annotations[LAST_APPLIED]).encode())
    if size > MAX_ANNOTATION_BYTES:
        del annotations[LAST_APPLIED]
    else:
        annotations[LAST_APPLIED] = text


def _conflict(found: list[tuple[Identity, Path]]) -> errors.Conflict:
    causes = [
        Cause(fieldsets.text(path), "FieldManagerConflict", f"conflict with {entries.describe(who)}")
        for who, path in found
    ]
    if len(found) == 1:
        who, path = found[0]
        message = f"Apply failed with 1 conflict: conflict with {entries.describe(who)}: {fieldsets.text(path)}"
        return errors.Conflict(message, causes=causes)
    by_manager: dict[Identity, list[Path]] = {}
    for who, path in found:
        by_manager.setdefault(who, []).append(path)
    lines = []
    for who in sorted(by_manager, key=lambda one: entries.identifier(one).encode()):
        lines.append(f"conflicts with {entries.describe(who)}:")
        lines += [f"- {fieldsets.text(path)}" for path in by_manager[who]]
    return errors.Conflict(f"Apply failed with {len(found)} conflicts: " + "\n".join(lines), causes=causes)


def _kind_text(api_version: str, kind: str) -> str:
    """``GroupVersionKind.String``."""
    group, slash, version = api_version.rpartition("/")
    return f"{group}/{version}, Kind={kind}" if slash or api_version else f"/, Kind={kind}"
