"""Security contexts of pods and containers, and what pods of an operating system may say.

Mirrors ``ValidateSecurityContext``, ``validatePodSpecSecurityContext``, ``validateWindowsSecurityContextOptions``,
``validateWindowsHostProcessPod``, ``validateHostUsers``, ``validateLinux`` and ``validateWindows`` of
``pkg/apis/core/validation``. As in most clusters, containers may be privileged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kemu.emulated.objects import names
from kemu.emulated.objects.validation import checks, volume_sources
from kemu.emulated.objects.validation.causes import duplicate, forbidden, invalid, not_supported, required, too_long
from kemu.emulated.objects.validation.pod_specs.volumes import AnyContainer
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2

_MOST_ID = 2**31 - 1
_ID_TEXT = f"must be between 0 and {_MOST_ID}, inclusive"
_PROFILE_TYPES = ("Localhost", "RuntimeDefault", "Unconfined")
_LONGEST_PROFILE = 4095

_SEGMENT = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = rf"({_SEGMENT}[\./])*{_SEGMENT}"
_sysctl = re.compile(_SYSCTL, re.ASCII)
_LONGEST_SYSCTL = 253
_IPC_SYSCTLS = (
    "kernel.sem", "kernel.shmall", "kernel.shmmax", "kernel.shmmni", "kernel.shm_rmid_forced", "kernel.shm",
    "kernel.msgmax", "kernel.msgmnb", "kernel.msgmni", "kernel.msg",
)  # fmt: skip
_SWAPPED = str.maketrans("./", "/.")

_NET_BIOS = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}')
_DNS_LABEL = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DNS = re.compile(rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*", re.ASCII)
_NOT_IN_USERS = re.compile(r'["/\\:;|=,+*?<>@\[\]]')
_MOST_SPEC_KIB, _LONGEST_DOMAIN, _LONGEST_USER = 64, 256, 104


def containers_of(spec: core_v1_pb2.PodSpec, path: str) -> Iterator[tuple[AnyContainer, str]]:
    """All, with their paths, as ``VisitContainersWithPath`` has them."""
    for index, container in enumerate(spec.initContainers):
        yield container, f"{path}.initContainers[{index}]"
    for index, container in enumerate(spec.containers):
        yield container, f"{path}.containers[{index}]"
    for index, one in enumerate(spec.ephemeralContainers):
        yield one.ephemeralContainerCommon, f"{path}.ephemeralContainers[{index}]"


# Contexts -----------------------------------------------------------------------------------------------------------


def check_container(context: core_v1_pb2.SecurityContext, path: str, has_host_users: bool, found: list[Cause]) -> None:
    _check_ids(context, ("runAsUser", "runAsGroup"), path, found)
    if context.HasField("procMount"):
        checks.listed(context.procMount, f"{path}.procMount", "core.v1.ProcMountType", found)
        if has_host_users and context.procMount == "Unmasked":
            detail = "`hostUsers` must be false to use `Unmasked`"
            found.append(invalid(f"{path}.procMount", context.procMount, detail))
    if context.HasField("seccompProfile"):
        _check_seccomp(context.seccompProfile, f"{path}.seccompProfile", found)
    if context.HasField("allowPrivilegeEscalation") and not context.allowPrivilegeEscalation:
        text = "cannot set `allowPrivilegeEscalation` to false and"
        if context.privileged:
            found.append(invalid(path, context, f"{text} `privileged` to true"))
        added = [one for one in context.capabilities.add if one == "CAP_SYS_ADMIN"]
        found.extend(invalid(path, context, f"{text} `capabilities.Add` CAP_SYS_ADMIN") for _ in added)
    if context.HasField("windowsOptions"):
        _check_windows_options(context.windowsOptions, f"{path}.windowsOptions", found)
    if context.HasField("appArmorProfile"):
        check_app_armor(context.appArmorProfile, f"{path}.appArmorProfile", found)


def check_pod(spec: core_v1_pb2.PodSpec, path: str, found: list[Cause]) -> None:
    """``path``: of the context."""
    context = spec.securityContext
    _check_ids(context, ("fsGroup", "runAsUser", "runAsGroup"), path, found)
    for index, group in enumerate(context.supplementalGroups):
        check_id(group, f"{path}.supplementalGroups[{index}]", found)
    if spec.shareProcessNamespace and spec.hostPID:
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        found.append(invalid(f"{path}.shareProcessNamespace", True, detail))
    if context.sysctls:
        _check_sysctls(spec, f"{path}.sysctls", found)
    if context.HasField("fsGroupChangePolicy"):
        policy = context.fsGroupChangePolicy
        checks.listed(policy, f"{path}.fsGroupChangePolicy", "core.v1.PodFSGroupChangePolicy", found)
    if context.HasField("seccompProfile"):
        _check_seccomp(context.seccompProfile, f"{path}.seccompProfile", found)
    if context.HasField("windowsOptions"):
        _check_windows_options(context.windowsOptions, f"{path}.windowsOptions", found)
    if context.HasField("appArmorProfile"):
        check_app_armor(context.appArmorProfile, f"{path}.appArmorProfile", found)
    if context.HasField("supplementalGroupsPolicy"):
        policy = context.supplementalGroupsPolicy
        checks.listed(policy, f"{path}.supplementalGroupsPolicy", "core.v1.SupplementalGroupsPolicy", found)
    if context.HasField("seLinuxChangePolicy"):
        # Others need the gate SELinuxMount, which is off.
        checks.listed(context.seLinuxChangePolicy, f"{path}.seLinuxChangePolicy", ("Recursive",), found)


def _check_ids(
    context: core_v1_pb2.SecurityContext | core_v1_pb2.PodSecurityContext,
    fields: tuple[str, ...],
    path: str,
    found: list[Cause],
) -> None:
    for field in fields:
        check_id(getattr(context, field), f"{path}.{field}", found)


def check_id(number: int, path: str, found: list[Cause]) -> None:
    """Of a user or a group."""
    if not 0 <= number <= _MOST_ID:
        found.append(invalid(path, number, _ID_TEXT))


def _check_sysctls(spec: core_v1_pb2.PodSpec, path: str, found: list[Cause]) -> None:
    seen: dict[str, None] = {}
    for index, one in enumerate(spec.securityContext.sysctls):
        here, name = f"{path}[{index}].name", one.name
        if not name:
            found.append(required(here))
        elif len(name.encode()) > _LONGEST_SYSCTL or not _sysctl.fullmatch(name):
            detail = f"must have at most {_LONGEST_SYSCTL} characters and match regex ^{_SYSCTL}$"
            found.append(invalid(here, name, detail))
        elif name in seen:
            found.append(duplicate(here, name))
        seen[name] = None
        # Whichever of the two comes first is what separates.
        dot, slash = name.find("."), name.find("/")
        is_swapped = slash >= 0 and (dot < 0 or slash < dot)
        plain = (name.translate(_SWAPPED) if is_swapped else name).partition("*")[0]
        if spec.hostNetwork and plain.startswith("net."):
            found.append(invalid(here, name, "may not be specified when 'hostNetwork' is true"))
        elif spec.hostIPC and (plain in _IPC_SYSCTLS or plain.startswith("fs.mqueue.")):
            found.append(invalid(here, name, "may not be specified when 'hostIPC' is true"))


def _check_seccomp(profile: core_v1_pb2.SeccompProfile, path: str, found: list[Cause]) -> None:
    if not profile.type:
        found.append(required(f"{path}.type", "type is required when seccompProfile is set"))
    else:
        checks.listed(profile.type, f"{path}.type", _PROFILE_TYPES, found)
    here = f"{path}.localhostProfile"
    if profile.type != "Localhost":
        if profile.HasField("localhostProfile"):
            found.append(invalid(here, profile, "can only be set when seccomp type is Localhost"))
    elif profile.HasField("localhostProfile"):
        volume_sources.check_descending(profile.localhostProfile, here, found)
    else:
        found.append(required(here, "must be set when seccomp type is Localhost"))


def check_app_armor(profile: core_v1_pb2.AppArmorProfile, path: str, found: list[Cause]) -> None:
    """``ValidateAppArmorProfileField``"""
    here, name = f"{path}.localhostProfile", profile.localhostProfile
    missing = required(here, "must be set when AppArmor type is Localhost")
    if profile.type == "Localhost":
        if not profile.HasField("localhostProfile"):
            found.append(missing)
            return
        if name.strip() != name:
            found.append(invalid(here, name, "must not be padded with whitespace"))
        elif not name:
            found.append(missing)
        if len(name.encode()) > _LONGEST_PROFILE:
            found.append(too_long(here, _LONGEST_PROFILE))
    elif profile.type in _PROFILE_TYPES:
        if profile.HasField("localhostProfile"):
            found.append(invalid(here, name, "can only be set when AppArmor type is Localhost"))
    elif not profile.type:
        found.append(required(f"{path}.type", "type is required when appArmorProfile is set"))
    else:
        found.append(not_supported(f"{path}.type", profile.type, _PROFILE_TYPES))


# Windows ------------------------------------------------------------------------------------------------------------


def _check_windows_options(options: core_v1_pb2.WindowsSecurityContextOptions, path: str, found: list[Cause]) -> None:
    if options.HasField("gmsaCredentialSpecName"):
        name = options.gmsaCredentialSpecName
        found.extend(invalid(f"{path}.gmsaCredentialSpecName", name, one) for one in names.dns_subdomain(name))
    if options.HasField("gmsaCredentialSpec"):
        spec, here = options.gmsaCredentialSpec, f"{path}.gmsaCredentialSpec"
        if not spec:
            found.append(invalid(here, spec, "gmsaCredentialSpec cannot be an empty string"))
        elif len(spec.encode()) > _MOST_SPEC_KIB * 1024:
            found.append(invalid(here, spec, f"gmsaCredentialSpec size must be under {_MOST_SPEC_KIB} KiB"))
    if options.HasField("runAsUserName"):
        name = options.runAsUserName
        problems = _user_problems(name)
        found.extend(invalid(f"{path}.runAsUserName", name, f"runAsUserName{one}") for one in problems)


def _user_problems(name: str) -> list[str]:
    """What is wrong with the name of a user of Windows, behind the name of the field."""
    if not name:
        return [" cannot be an empty string"]
    if any(letter < " " or letter == "\x7f" for letter in name):
        return [" cannot contain control characters"]
    if name.count("\\") > 1:
        return [" cannot contain more than one backslash"]
    domain, backslash, user = name.rpartition("\\")
    found = []
    if len(domain.encode()) >= _LONGEST_DOMAIN:
        found.append(f"'s Domain length must be under {_LONGEST_DOMAIN} characters")
    if backslash and not (_NET_BIOS.fullmatch(domain) or _DNS.fullmatch(domain)):
        found.append("'s Domain doesn't match the NetBios nor the DNS format")
    if not user:
        found.append("'s User cannot be empty")
    elif len(user.encode()) > _LONGEST_USER:
        found.append(f"'s User length must not be longer than {_LONGEST_USER} characters")
    if user and not user.strip(". "):
        found.append("'s User cannot contain only periods or spaces")
    if _NOT_IN_USERS.search(user):
        found.append("""'s User cannot contain the following characters: "/\\:;|=,+*?<>@[]""")
    return found


def check_host_processes(spec: core_v1_pb2.PodSpec, path: str, found: list[Cause]) -> None:
    """``validateWindowsHostProcessPod``: all containers of a pod run as processes of the host, or none."""
    of_pod = spec.securityContext.windowsOptions
    count = total = 0
    for container, here in containers_of(spec, path):
        total += 1
        options = container.securityContext.windowsOptions
        is_one = options.hostProcess
        if of_pod.HasField("hostProcess"):
            if not options.HasField("hostProcess"):
                is_one = of_pod.hostProcess
            elif is_one != of_pod.hostProcess:
                said = str(of_pod.hostProcess).lower()
                detail = f"pod hostProcess value must be identical if both are specified, was {said}"
                found.append(invalid(f"{here}.securityContext.windowsOptions.hostProcess", is_one, detail))
        count += is_one
    if not count:
        return
    if count != total:
        detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers"
        found.append(invalid(path, "", detail))
    if not spec.hostNetwork:
        detail = "hostNetwork must be true if pod contains any hostProcess containers"
        found.append(invalid(f"{path}.hostNetwork", False, detail))


# What goes with what ------------------------------------------------------------------------------------------------


def check_own_users(spec: core_v1_pb2.PodSpec, path: str, found: list[Cause]) -> None:
    """``validateHostUsers``, of a pod that has users of its own."""
    for field, name in (("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")):
        if getattr(spec, field):
            found.append(forbidden(f"{path}.{name}", "when `hostUsers` is false"))
    for container, here in containers_of(spec, path):
        if container.volumeDevices:
            found.append(forbidden(f"{here}.volumeDevices", "when `hostUsers` is false"))


_OF_PODS = (
    "securityContext.appArmorProfile", "securityContext.seLinuxOptions", "hostUsers", "hostPID", "hostIPC",
    "securityContext.seccompProfile", "securityContext.fsGroup", "securityContext.fsGroupChangePolicy",
    "securityContext.sysctls", "shareProcessNamespace", "securityContext.runAsUser", "securityContext.runAsGroup",
    "securityContext.supplementalGroups", "securityContext.supplementalGroupsPolicy",
    "securityContext.seLinuxChangePolicy",
)  # fmt: skip
_OF_CONTAINERS = (
    "appArmorProfile", "seLinuxOptions", "seccompProfile", "capabilities", "readOnlyRootFilesystem", "privileged",
    "allowPrivilegeEscalation", "procMount", "runAsUser", "runAsGroup",
)  # fmt: skip
"""What is not for Windows, in Kubernetes' order."""


def check_system(spec: core_v1_pb2.PodSpec, path: str, found: list[Cause]) -> None:
    """``validateOS``, and what containers for the other one have."""
    name = spec.os.name
    if not name:
        found.append(required(f"{path}.os.name"))
    elif name == "linux":
        detail = "windows options cannot be set for a linux pod"
        if spec.securityContext.HasField("windowsOptions"):
            found.append(forbidden(f"{path}.securityContext.windowsOptions", detail))
        for container, here in containers_of(spec, path):
            if container.securityContext.HasField("windowsOptions"):
                found.append(forbidden(f"{here}.securityContext.windowsOptions", detail))
    elif name == "windows":
        _check_windows(spec, path, found)
    else:
        found.append(not_supported(f"{path}.os", name, ("linux", "windows")))


def _check_windows(spec: core_v1_pb2.PodSpec, path: str, found: list[Cause]) -> None:
    detail = "cannot be set for a windows pod"
    said = {field.name for field, _ in spec.ListFields()}
    said |= {f"securityContext.{field.name}" for field, _ in spec.securityContext.ListFields()}
    if not spec.hostPID:
        said.discard("hostPID")
    if not spec.hostIPC:
        said.discard("hostIPC")
    found.extend(forbidden(f"{path}.{field}", detail) for field in _OF_PODS if field in said)
    for container, here in containers_of(spec, path):
        said = {field.name for field, _ in container.securityContext.ListFields()}
        found.extend(forbidden(f"{here}.securityContext.{one}", detail) for one in _OF_CONTAINERS if one in said)
