"""ServiceAccount: a pod has a service account that exists, and its containers mount a token of it
(``plugin/pkg/admission/serviceaccount``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kemu import errors
from kemu.emulated.apiserver.admission.base import Host, Plugin
from kemu.emulated.objects import meta, resources
from kemu.emulated.objects.resources import Resource
from kemu.messages.k8s import core_v1_pb2

DEFAULT = "default"
ENFORCE = "kubernetes.io/enforce-mountable-secrets"
"""Annotation of accounts: pods may use none but the secrets that the account names."""
VOLUME_PREFIX = "kube-api-access-"
MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
EXPIRATION_S = 3607
_ATTEMPTS = 10
"""So often the account ``default`` is looked for, which a controller makes; another one once."""
_LETTERS, _LENGTH = "bcdfghjklmnpqrstvwxz2456789", 5
_TRUE = ("1", "t", "T", "true", "TRUE", "True")
_ACCOUNTS = resources.BY_PLURAL["serviceaccounts"]

_Container = core_v1_pb2.Container | core_v1_pb2.EphemeralContainerCommon


class ServiceAccount(Plugin[core_v1_pb2.Pod]):
    @classmethod
    def concerns(cls, resource: Resource) -> bool:
        return resource.plural == "pods"

    def attach(self, host: Host) -> None:
        self._env = host.env

    async def create(self, resource: Resource, obj: core_v1_pb2.Pod) -> None:
        spec = obj.spec
        if meta.MIRROR_ANNOTATION in obj.metadata.annotations:
            _check_mirror(obj)
            return
        # The old and the new name of the field always hold the same value.
        spec.serviceAccountName = spec.serviceAccount = spec.serviceAccountName or DEFAULT
        account = await self._account(obj)
        if _automounts(account, spec):
            self._mount(spec)
        if not spec.imagePullSecrets:
            spec.imagePullSecrets.extend(account.imagePullSecrets)
        if _enforces(account):
            problem = next(_unnamed(account, spec), "")
            if problem:
                raise _forbidden(obj, problem)

    def may_validate_update(self, resource: Resource, subresource: str) -> bool:
        return subresource == "ephemeralcontainers"

    async def validate_update(
        self, resource: Resource, subresource: str, new: core_v1_pb2.Pod, old: core_v1_pb2.Pod
    ) -> None:
        if not new.spec.serviceAccountName:
            name = new.metadata.name
            raise _forbidden(new, f"no service account specified for pod {new.metadata.namespace}/{name}")
        account = await self._account(new)
        if _enforces(account):
            named = {one.name for one in account.secrets}
            containers = [one.ephemeralContainerCommon for one in new.spec.ephemeralContainers]
            problem = next(_of_containers(account, named, containers, "ephemeral container"), "")
            if problem:
                raise errors.ApiError(problem)  # Kubernetes does not say here that it is a refusal.

    async def _account(self, pod: core_v1_pb2.Pod) -> core_v1_pb2.ServiceAccount:
        """Raises Forbidden where there is none."""
        namespace, name = pod.metadata.namespace, pod.spec.serviceAccountName
        key = resources.key(_ACCOUNTS, namespace, name)
        entry = self.cache.collections[_ACCOUNTS.plural].entries.get(key)
        if entry is None:
            pause_s = 0.0
            for _ in range(_ATTEMPTS if name == DEFAULT else 1):
                if pause_s:
                    await self._env.clock.sleep(pause_s)
                entry = await self.storage.read(key)
                if entry is not None:
                    break
                pause_s = pause_s or (100 + self._env.random.randrange(100)) / 1000
        if entry is None:
            text = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
            raise _forbidden(pod, text)
        return core_v1_pb2.ServiceAccount.FromString(entry.value)

    def _mount(self, spec: core_v1_pb2.PodSpec) -> None:
        """``mountServiceAccountToken``."""
        name = next((one.name for one in spec.volumes if one.name.startswith(VOLUME_PREFIX)), "")
        has_volume = bool(name)
        if not name:
            choose = self._env.random.randrange
            name = VOLUME_PREFIX + "".join([_LETTERS[choose(len(_LETTERS))] for _ in range(_LENGTH)])
        needs_volume = False
        for container in (*spec.initContainers, *spec.containers):
            if all(one.mountPath != MOUNT_PATH for one in container.volumeMounts):
                container.volumeMounts.add(name=name, readOnly=True, mountPath=MOUNT_PATH)
                needs_volume = True
        if needs_volume and not has_volume:
            projected = spec.volumes.add(name=name).volumeSource.projected
            projected.defaultMode = 0o644
            token = projected.sources.add().serviceAccountToken
            token.path, token.expirationSeconds = "token", EXPIRATION_S
            roots = projected.sources.add().configMap
            roots.localObjectReference.name = "kube-root-ca.crt"
            roots.items.add(key="ca.crt", path="ca.crt")
            item = projected.sources.add().downwardAPI.items.add(path="namespace")
            item.fieldRef.apiVersion, item.fieldRef.fieldPath = "v1", "metadata.namespace"


def _automounts(account: core_v1_pb2.ServiceAccount, spec: core_v1_pb2.PodSpec) -> bool:
    """The pod has the first word, then the account."""
    for one in (spec, account):
        if one.HasField("automountServiceAccountToken"):
            return bool(one.automountServiceAccountToken)
    return True


def _enforces(account: core_v1_pb2.ServiceAccount) -> bool:
    return account.metadata.annotations.get(ENFORCE, "") in _TRUE


def _check_mirror(pod: core_v1_pb2.Pod) -> None:
    """Mirror pods are not more than shown."""
    spec = pod.spec
    if spec.serviceAccountName:
        raise _forbidden(pod, "a mirror pod may not reference service accounts")
    containers = [*spec.initContainers, *spec.containers]
    if spec.imagePullSecrets or any(_secrets_of_volumes(spec)) or any(_secrets_of(one) for one in containers):
        raise _forbidden(pod, "a mirror pod may not reference secrets")
    for volume in spec.volumes:
        if any(one.HasField("serviceAccountToken") for one in volume.volumeSource.projected.sources):
            raise _forbidden(pod, "a mirror pod may not use ServiceAccountToken volume projections")


def _secrets_of_volumes(spec: core_v1_pb2.PodSpec) -> Iterator[bool]:
    for volume in spec.volumes:
        source = volume.volumeSource
        yield source.HasField("secret") or any(one.HasField("secret") for one in source.projected.sources)


def _secrets_of(container: _Container) -> list[tuple[str, str]]:
    """Where a container names secrets, and their names."""
    found = [
        (f"envVar {one.name}", one.valueFrom.secretKeyRef.localObjectReference.name)
        for one in container.env
        if one.valueFrom.HasField("secretKeyRef")
    ]
    found += [
        ("envFrom", one.secretRef.localObjectReference.name) for one in container.envFrom if one.HasField("secretRef")
    ]
    return found


def _unnamed(account: core_v1_pb2.ServiceAccount, spec: core_v1_pb2.PodSpec) -> Iterator[str]:
    """What is wrong with secrets of a pod that its account does not name (``limitSecretReferences``)."""
    named = {one.name for one in account.secrets}
    owner = f"because service account {account.metadata.name} does not reference that"
    for volume in spec.volumes:
        secret = volume.volumeSource.secret.secretName
        if volume.volumeSource.HasField("secret") and secret not in named:
            yield f'volume with secret.secretName="{secret}" is not allowed {owner} secret'
    yield from _of_containers(account, named, spec.initContainers, "init container")
    yield from _of_containers(account, named, spec.containers, "container")
    pulls = {one.name for one in account.imagePullSecrets}
    for index, reference in enumerate(spec.imagePullSecrets):
        if reference.name not in pulls:
            yield f'imagePullSecrets[{index}].name="{reference.name}" is not allowed {owner} imagePullSecret'


def _of_containers(
    account: core_v1_pb2.ServiceAccount, named: set[str], containers: Iterable[_Container], what: str
) -> Iterator[str]:
    for container in containers:
        for where, secret in _secrets_of(container):
            if secret not in named:
                text = f'{what} {container.name} with {where} referencing secret.secretName="{secret}" is not allowed'
                yield f"{text} because service account {account.metadata.name} does not reference that secret"


def _forbidden(pod: core_v1_pb2.Pod, text: str) -> errors.Forbidden:
    name = pod.metadata.name
    return errors.Forbidden(f'pods "{name}" is forbidden: {text}', kind="pods", name=name)
