"""The checks that the level ``restricted`` adds (``policy/check_*.go``)."""

from __future__ import annotations

from typing import NamedTuple

from kemu.emulated.apiserver.admission.pod_security.baseline import Check, proc_mount, seccomp_set
from kemu.emulated.apiserver.admission.pod_security.visits import (
    Metadata,
    Spec,
    Violation,
    containers,
    has_own_users,
    is_windows,
    named,
    number,
    quoted,
    setters,
)

_ALL, _NET_BIND_SERVICE = "ALL", "NET_BIND_SERVICE"
_VOLUMES = frozenset(
    (
        *("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected"),
        "secret",
    )
)


def _escalation(metadata: Metadata, spec: Spec) -> Violation | None:
    bad = []
    for one in containers(spec):
        context = one.securityContext
        if not context.HasField("allowPrivilegeEscalation") or context.allowPrivilegeEscalation:
            bad.append(one.name)
    if not bad:
        return None
    detail = f"{named(bad)} must set securityContext.allowPrivilegeEscalation=false"
    return Violation("allowPrivilegeEscalation != false", detail)


def _capabilities(metadata: Metadata, spec: Spec) -> Violation | None:
    keeping, adding, found = [], [], set()
    for one in containers(spec):
        capabilities = one.securityContext.capabilities
        if _ALL not in capabilities.drop:
            keeping.append(one.name)
        odd = [name for name in capabilities.add if name != _NET_BIND_SERVICE]
        if odd:
            adding.append(one.name)
            found.update(odd)
    details = [f'{named(keeping)} must set securityContext.capabilities.drop=["ALL"]'] if keeping else []
    if adding:
        details.append(f"{named(adding)} must not include {quoted(sorted(found))} in securityContext.capabilities.add")
    return Violation("unrestricted capabilities", "; ".join(details)) if details else None


def _volumes(metadata: Metadata, spec: Spec) -> Violation | None:
    bad, found = [], set()
    for one in spec.volumes:
        kind = next((field.name for field, _ in one.volumeSource.ListFields()), "unknown")
        if kind not in _VOLUMES:
            bad.append(one.name)
            found.add(kind)
    if not bad:
        return None
    whose = f"{number('volume', 'volumes', len(bad))} {quoted(bad)} {number('uses', 'use', len(bad))}"
    what = number("restricted volume type", "restricted volume types", len(found))
    return Violation("restricted volume types", f"{whose} {what} {quoted(sorted(found))}")


def _non_root(metadata: Metadata, spec: Spec) -> Violation | None:
    context = spec.securityContext
    is_set = context.HasField("runAsNonRoot")
    bad, silent = [], []
    for one in containers(spec):
        if one.securityContext.HasField("runAsNonRoot"):
            if not one.securityContext.runAsNonRoot:
                bad.append(one.name)
        elif not context.runAsNonRoot:
            silent.append(one.name)
    reason = "runAsNonRoot != true"
    who = setters(is_set and not context.runAsNonRoot, bad)
    if who:
        return Violation(reason, f"{who} must not set securityContext.runAsNonRoot=false")
    return Violation(reason, f"pod or {named(silent)} must set securityContext.runAsNonRoot=true") if silent else None


def _non_root_35(metadata: Metadata, spec: Spec) -> Violation | None:
    return None if has_own_users(spec) else _non_root(metadata, spec)


def _user(metadata: Metadata, spec: Spec) -> Violation | None:
    bad = [
        one.name
        for one in containers(spec)
        if one.securityContext.HasField("runAsUser") and one.securityContext.runAsUser == 0
    ]
    context = spec.securityContext
    who = setters(context.HasField("runAsUser") and context.runAsUser == 0, bad)
    return Violation("runAsUser=0", f"{who} must not set runAsUser=0") if who else None


def _user_35(metadata: Metadata, spec: Spec) -> Violation | None:
    return None if has_own_users(spec) else _user(metadata, spec)


def _seccomp(metadata: Metadata, spec: Spec) -> Violation | None:
    found = seccomp_set(spec)
    if found is not None or spec.securityContext.HasField("seccompProfile"):
        return found
    silent = [one.name for one in containers(spec) if not one.securityContext.HasField("seccompProfile")]
    if not silent:
        return None
    detail = f'pod or {named(silent)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"'
    return Violation("seccompProfile", detail)


def _not_of_windows(check: Check) -> Check:
    """Pods of Windows may not even set what is asked for."""
    return lambda metadata, spec: None if is_windows(spec) else check(metadata, spec)


class Versioned(NamedTuple):
    since: int
    check: Check
    instead_of: str = ""
    """The check of the level baseline that is left out."""


CHECKS: dict[str, tuple[Versioned, ...]] = {
    "allowPrivilegeEscalation": (Versioned(8, _escalation), Versioned(25, _not_of_windows(_escalation))),
    "capabilities_restricted": (
        Versioned(22, _capabilities, "capabilities_baseline"),
        Versioned(25, _not_of_windows(_capabilities), "capabilities_baseline"),
    ),
    "procMount_restricted": (Versioned(35, proc_mount, "procMount"),),
    "restrictedVolumes": (Versioned(0, _volumes, "hostPathVolumes"),),
    "runAsNonRoot": (Versioned(0, _non_root), Versioned(35, _non_root_35)),
    "runAsUser": (Versioned(23, _user), Versioned(35, _user_35)),
    "seccompProfile_restricted": (
        Versioned(19, _seccomp, "seccompProfile_baseline"),
        Versioned(25, _not_of_windows(_seccomp), "seccompProfile_baseline"),
    ),
}
"""By name, in the order in which they are told, after those of the level baseline."""
