"""Whether the ConfigMaps, Secrets and images that a pod names are there, where they have to be; and what they hold.

The volume manager asks before it mounts, and what starts containers before it creates one: the texts are those of
``pkg/volume/{configmap,secret,projected}`` and ``makeEnvironmentVariables`` of ``pkg/kubelet``.
"""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from kemu import errors
from kemu.emulated.client import clients, retries
from kemu.emulated.kubelet.programs import courses, environments
from kemu.emulated.kubelet.settings.references import STRICT, References
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import Env

_Found = core_v1_pb2.ConfigMap | core_v1_pb2.Secret
_PLURALS = {"configmap": "configmaps", "secret": "secrets"}
CONFIG_ERROR = "CreateContainerConfigError"
"""What the status of a container says whose environment cannot be made."""


class Contents:
    """What the programs of pods read of ConfigMaps, Secrets and Services."""

    def __init__(self, env: Env, client: clients.Client) -> None:
        self._env = env
        self._client = client

    async def read(self, pod: core_v1_pb2.Pod, wanted: Iterable[tuple[str, str]]) -> environments.Sources:
        """``wanted``: as :func:`kemu.emulated.kubelet.programs.environments.named` has it. What cannot be read is left
        out."""
        found: dict[tuple[str, str], Mapping[str, str] | None] = {}
        namespace = pod.metadata.namespace
        for kind, name in wanted:
            try:
                if (kind, name) == environments.SERVICES:
                    call = functools.partial(self._client.list, "services", namespace)
                    listed = await retries.patiently(self._env, call)
                    found[kind, name] = environments.of_services(pod, cast("list[core_v1_pb2.Service]", listed.items))
                    continue
                plural = _PLURALS[kind.lower()]
                obj = await retries.patiently(self._env, functools.partial(self._client.get, plural, name, namespace))
                found[kind, name] = data_of(cast("_Found", obj))
            except errors.NotFound:
                found[kind, name] = None
            except errors.ApiError:
                continue
        return found


def data_of(found: _Found) -> Mapping[str, str]:
    """What a ConfigMap or a Secret holds, as text."""
    if isinstance(found, core_v1_pb2.Secret):
        return courses.decoded(found.data)
    return {**found.data, **courses.decoded(found.binaryData)}


class _Reference(NamedTuple):
    """Of a volume or an environment."""

    kind: str
    """``configmap`` or ``secret``."""
    name: str
    keys: Sequence[str]
    """That it must have."""
    optional: bool


class Names:
    """What is there for the pods of one kubelet."""

    def __init__(self, env: Env, client: clients.Client, settings: References) -> None:
        self._env = env
        self._client = client
        self._is_strict = settings.contents == STRICT
        self._images = tuple(re.compile(fnmatch.translate(one)) for one in settings.missing_images)

    def pull_error(self, image: str) -> str:
        """Why an image cannot be pulled; "": nothing is known against it."""
        if not any(pattern.match(image) for pattern in self._images):
            return ""
        return f'failed to pull and unpack image "{image}": failed to resolve reference "{image}": {image}: not found'

    # Volumes

    def are_in_volumes(self, pod: core_v1_pb2.Pod) -> bool:
        return self._is_strict and any(next(_of_volume(one), None) is not None for one in pod.spec.volumes)

    async def lacking_in_volume(self, pod: core_v1_pb2.Pod, volume: core_v1_pb2.Volume) -> str:
        """The first thing that a volume lacks; "": nothing."""
        if self._is_strict:
            for one in _of_volume(volume):
                found = await self._look(pod, one)
                if isinstance(found, str):
                    return found
                lacking = next((key for key in one.keys if not _has(found, key)), None)
                if lacking is not None and not one.optional:
                    if one.kind == "secret":
                        return f"references non-existent secret key: {lacking}"
                    return f"configmap references non-existent config key: {lacking}"
        return ""

    # Environments

    def are_in_environment(self, container: core_v1_pb2.Container) -> bool:
        return self._is_strict and next(_of_environment(container), None) is not None

    async def lacking_in_environment(self, pod: core_v1_pb2.Pod, container: core_v1_pb2.Container) -> str:
        """The same of the environment of a container."""
        for one in _of_environment(container):
            found = await self._look(pod, one)
            if isinstance(found, str):
                return found
            lacking = next((key for key in one.keys if not _has(found, key)), None)
            if lacking is not None and not one.optional:
                kind = "ConfigMap" if one.kind == "configmap" else "Secret"
                return f"couldn't find key {lacking} in {kind} {pod.metadata.namespace}/{one.name}"
        return ""

    async def _look(self, pod: core_v1_pb2.Pod, one: _Reference) -> _Found | str | None:
        """The object, None where it is lacking and optional, or why there is none."""
        plural, namespace = _PLURALS[one.kind], pod.metadata.namespace
        try:
            found = await retries.patiently(self._env, functools.partial(self._client.get, plural, one.name, namespace))
            return cast("_Found", found)
        except errors.NotFound:
            return None if one.optional else f'{one.kind} "{one.name}" not found'
        except errors.ApiError as error:
            return error.message


def _has(found: _Found | None, key: str) -> bool:
    """Whether a ConfigMap or Secret has a key; of one that may be lacking, nothing is asked."""
    return found is None or key in found.data or (isinstance(found, core_v1_pb2.ConfigMap) and key in found.binaryData)


def _of_volume(volume: core_v1_pb2.Volume) -> Iterator[_Reference]:
    source = volume.volumeSource
    if source.HasField("secret"):
        secret = source.secret
        yield _Reference("secret", secret.secretName, [item.key for item in secret.items], secret.optional)
    elif source.HasField("configMap"):
        yield _of_source("configmap", source.configMap)
    elif source.HasField("projected"):
        for one in source.projected.sources:
            if one.HasField("secret"):
                yield _of_source("secret", one.secret)
            elif one.HasField("configMap"):
                yield _of_source("configmap", one.configMap)


def _of_source(
    kind: str,
    source: core_v1_pb2.ConfigMapVolumeSource | core_v1_pb2.ConfigMapProjection | core_v1_pb2.SecretProjection,
) -> _Reference:
    return _Reference(kind, source.localObjectReference.name, [item.key for item in source.items], source.optional)


def _of_environment(container: core_v1_pb2.Container) -> Iterator[_Reference]:
    for many in container.envFrom:
        if many.HasField("configMapRef"):
            yield _Reference("configmap", many.configMapRef.localObjectReference.name, (), many.configMapRef.optional)
        if many.HasField("secretRef"):
            yield _Reference("secret", many.secretRef.localObjectReference.name, (), many.secretRef.optional)
    for variable in container.env:
        source = variable.valueFrom
        if source.HasField("configMapKeyRef"):
            key = source.configMapKeyRef
            yield _Reference("configmap", key.localObjectReference.name, (key.key,), key.optional)
        elif source.HasField("secretKeyRef"):
            secret = source.secretKeyRef
            yield _Reference("secret", secret.localObjectReference.name, (secret.key,), secret.optional)
