"""The checks of the level ``baseline`` (``policy/check_*.go``). Each returns what it has against a pod, or None."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator

from kemu.emulated.apiserver.admission.pod_security.visits import (
    Container,
    Metadata,
    Spec,
    Violation,
    containers,
    has_own_users,
    named,
    number,
    quoted,
    setters,
)
from kemu.messages.k8s import core_v1_pb2

Check = Callable[[Metadata, Spec], Violation | None]

_APP_ARMOR_PREFIX = "container.apparmor.security.beta.kubernetes.io/"
_SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
_SECCOMP_PREFIX = "container.seccomp.security.alpha.kubernetes.io/"
_CAPABILITIES = frozenset(
    (
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP"),
        *("SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    )
)
_SYSCTLS = (
    "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range",
    "net.ipv4.ip_unprivileged_port_start",
)  # fmt: skip
_SYSCTLS_27 = (*_SYSCTLS, "net.ipv4.ip_local_reserved_ports")
_SYSCTLS_29 = (
    *_SYSCTLS_27, "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
)  # fmt: skip
_SYSCTLS_32 = (*_SYSCTLS_29, "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem")
_SE_TYPES = ("", "container_t", "container_init_t", "container_kvm_t")
_SE_TYPES_31 = (*_SE_TYPES, "container_engine_t")
_PROFILES = ("RuntimeDefault", "Localhost")


def _app_armor(metadata: Metadata, spec: Spec) -> Violation | None:
    values: set[str] = set()
    of_pod = False
    profile = spec.securityContext.appArmorProfile
    if spec.securityContext.HasField("appArmorProfile") and profile.type not in _PROFILES:
        of_pod = True
        values.add(profile.type)
    bad = []
    for one in containers(spec):
        context = one.securityContext
        if context.HasField("appArmorProfile") and context.appArmorProfile.type not in _PROFILES:
            bad.append(one.name)
            values.add(context.appArmorProfile.type)
    annotations = sorted(
        [
            f"{name}={_go_quoted(value)}"
            for name, value in metadata.annotations.items()
            if name.startswith(_APP_ARMOR_PREFIX)
            and value not in ("", "runtime/default")
            and not value.startswith("localhost/")
        ]
    )
    who = setters(of_pod, bad)
    if annotations:
        what = number("annotation", "annotations", len(annotations))
        who = f"{who} and {what}" if who else what
    if not who:
        return None
    shown = [*sorted(values), *annotations]
    return Violation(
        number("forbidden AppArmor profile", "forbidden AppArmor profiles", len(shown)),
        f"{who} must not set AppArmor profile type to {quoted(shown)}",
    )


def _capabilities(metadata: Metadata, spec: Spec) -> Violation | None:
    bad, found = [], set()
    for one in containers(spec):
        odd = [name for name in one.securityContext.capabilities.add if name not in _CAPABILITIES]
        if odd:
            bad.append(one.name)
            found.update(odd)
    if not bad:
        return None
    detail = f"{named(bad)} must not include {quoted(sorted(found))} in securityContext.capabilities.add"
    return Violation("non-default capabilities", detail)


def _host_namespaces(metadata: Metadata, spec: Spec) -> Violation | None:
    used = [f"{name}=true" for name in ("hostNetwork", "hostPID", "hostIPC") if getattr(spec, name)]
    return Violation("host namespaces", ", ".join(used)) if used else None


def _host_paths(metadata: Metadata, spec: Spec) -> Violation | None:
    bad = [one.name for one in spec.volumes if one.volumeSource.HasField("hostPath")]
    return Violation("hostPath volumes", f"{number('volume', 'volumes', len(bad))} {quoted(bad)}") if bad else None


def _host_ports(metadata: Metadata, spec: Spec) -> Violation | None:
    bad, found = [], set()
    for one in containers(spec):
        ports = [str(port.hostPort) for port in one.ports if port.hostPort]
        if ports:
            bad.append(one.name)
            found.update(ports)
    if not bad:
        return None
    what = number("hostPort", "hostPorts", len(found))
    return Violation("hostPort", f"{named(bad)} {number('uses', 'use', len(bad))} {what} {', '.join(sorted(found))}")


def _hosts_asked(metadata: Metadata, spec: Spec) -> Violation | None:
    bad, found = set(), set()
    for one in containers(spec):
        hosts = [host for host in _hosts(one) if host]
        if hosts:
            bad.add(one.name)
            found.update(hosts)
    if not bad:
        return None
    what = number("probe or lifecycle host", "probe or lifecycle hosts", len(found))
    detail = f"{named(sorted(bad))} {number('uses', 'use', len(bad))} {what} {quoted(sorted(found))}"
    return Violation("probe or lifecycle host", detail)


def _hosts(container: Container) -> Iterator[str]:
    for probe in (container.livenessProbe, container.readinessProbe, container.startupProbe):
        yield probe.handler.httpGet.host
        yield probe.handler.tcpSocket.host
    for handler in (container.lifecycle.postStart, container.lifecycle.preStop):
        yield handler.httpGet.host
        yield handler.tcpSocket.host


def _privileged(metadata: Metadata, spec: Spec) -> Violation | None:
    bad = [one.name for one in containers(spec) if one.securityContext.privileged]
    return Violation("privileged", f"{named(bad)} must not set securityContext.privileged=true") if bad else None


def proc_mount(metadata: Metadata, spec: Spec) -> Violation | None:
    bad, found = [], set()
    for one in containers(spec):
        context = one.securityContext
        if context.HasField("procMount") and context.procMount != "Default":
            bad.append(one.name)
            found.add(context.procMount)
    if not bad:
        return None
    return Violation("procMount", f"{named(bad)} must not set securityContext.procMount to {quoted(sorted(found))}")


def _proc_mount_35(metadata: Metadata, spec: Spec) -> Violation | None:
    return None if has_own_users(spec) else proc_mount(metadata, spec)


def _se_linux(types: Collection[str]) -> Check:
    def check(metadata: Metadata, spec: Spec) -> Violation | None:
        context = spec.securityContext
        options = [context.seLinuxOptions] if context.HasField("seLinuxOptions") else []
        of_pod = any(_is_odd(one) for one in options)
        bad = []
        for one in containers(spec):
            if one.securityContext.HasField("seLinuxOptions"):
                options.append(one.securityContext.seLinuxOptions)
                if _is_odd(options[-1]):
                    bad.append(one.name)
        who = setters(of_pod, bad)
        if not who:
            return None
        odd = sorted({one.type for one in options} - set(types))
        what = [f"{number('type', 'types', len(odd))} {quoted(odd)}"] if odd else []
        what += ["user may not be set"] if any(one.user for one in options) else []
        what += ["role may not be set"] if any(one.role for one in options) else []
        return Violation("seLinuxOptions", f"{who} set forbidden securityContext.seLinuxOptions: {'; '.join(what)}")

    def _is_odd(options: core_v1_pb2.SELinuxOptions) -> bool:
        return bool(options.type not in types or options.user or options.role)

    return check


def _seccomp_annotations(metadata: Metadata, spec: Spec) -> Violation | None:
    names = [_SECCOMP_POD, *(_SECCOMP_PREFIX + one.name for one in containers(spec))]
    found = sorted(
        {
            f"{name}={_go_quoted(metadata.annotations[name])}"
            for name in names
            if name in metadata.annotations and not _is_known_profile(metadata.annotations[name])
        }
    )
    if not found:
        return None
    return Violation(
        "seccompProfile", f"forbidden {number('annotation', 'annotations', len(found))} {', '.join(found)}"
    )


def _is_known_profile(text: str) -> bool:
    return text in ("runtime/default", "docker/default") or text.startswith("localhost/")


def seccomp_set(spec: Spec) -> Violation | None:
    """Profiles that are set, and may not be."""
    values: set[str] = set()
    context = spec.securityContext
    of_pod = context.HasField("seccompProfile") and context.seccompProfile.type not in _PROFILES
    if of_pod:
        values.add(context.seccompProfile.type)
    bad = []
    for one in containers(spec):
        own = one.securityContext
        if own.HasField("seccompProfile") and own.seccompProfile.type not in _PROFILES:
            bad.append(one.name)
            values.add(own.seccompProfile.type)
    who = setters(of_pod, bad)
    if not who:
        return None
    detail = f"{who} must not set securityContext.seccompProfile.type to {quoted(sorted(values))}"
    return Violation("seccompProfile", detail)


def _seccomp(metadata: Metadata, spec: Spec) -> Violation | None:
    return seccomp_set(spec)


def _sysctls(allowed: Collection[str]) -> Check:
    def check(metadata: Metadata, spec: Spec) -> Violation | None:
        bad = [one.name for one in spec.securityContext.sysctls if one.name not in allowed]
        return Violation("forbidden sysctls", ", ".join(bad)) if bad else None

    return check


def _host_process(metadata: Metadata, spec: Spec) -> Violation | None:
    bad = [one.name for one in containers(spec) if one.securityContext.windowsOptions.hostProcess]
    who = setters(spec.securityContext.windowsOptions.hostProcess, bad)
    if not who:
        return None
    return Violation("hostProcess", f"{who} must not set securityContext.windowsOptions.hostProcess=true")


def _go_quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


CHECKS: dict[str, tuple[tuple[int, Check], ...]] = {
    "appArmorProfile": ((0, _app_armor),),
    "capabilities_baseline": ((0, _capabilities),),
    "hostNamespaces": ((0, _host_namespaces),),
    "hostPathVolumes": ((0, _host_paths),),
    "hostPorts": ((0, _host_ports),),
    "hostProbesAndHostLifecycle": ((34, _hosts_asked),),
    "privileged": ((0, _privileged),),
    "procMount": ((0, proc_mount), (35, _proc_mount_35)),
    "seLinuxOptions": ((0, _se_linux(_SE_TYPES)), (31, _se_linux(_SE_TYPES_31))),
    "seccompProfile_baseline": ((0, _seccomp_annotations), (19, _seccomp)),
    "sysctls": ((0, _sysctls(_SYSCTLS)), (27, _sysctls(_SYSCTLS_27)), (29, _sysctls(_SYSCTLS_29)),
                (32, _sysctls(_SYSCTLS_32))),
    "windowsHostProcess": ((0, _host_process),),
}  # fmt: skip
"""By name, in the order in which they are told: since which minor version it is what."""
