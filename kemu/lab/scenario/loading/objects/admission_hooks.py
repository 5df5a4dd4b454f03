"""Hooks of a scenario, of admission and of conversion: their functions, and the webhooks that they stand for."""

from __future__ import annotations

from collections.abc import Iterable

from kemu.emulated.apiserver.custom.conversions import WEBHOOK
from kemu.emulated.apiserver.settings import CALL, ApiServers
from kemu.emulated.settings.documents import Path
from kemu.emulated.settings.shapes import INVALID, Report
from kemu.lab.scenario.loading.objects.manifests import Declared
from kemu.messages.k8s import admissionregistration_v1_pb2 as v1
from kemu.messages.k8s.apiextensions_v1_pb2 import CustomResourceDefinition
from kemu.runtime import user_code

_PATH: Path = ("spec", "apiServers", "admissionHooks")
_CONVERSIONS: Path = ("spec", "apiServers", "conversionHooks")


def check(servers: ApiServers, declared: Iterable[Declared], report: Report) -> None:
    """There are such functions, and one for each webhook, as virtual time has no network. Raises UserCodeFailed where
    the module of a function raises."""
    hooks = [one for one in servers.admission_hooks if one is not INVALID]
    for index, hook in enumerate(hooks):
        _check_function(hook["hook"], (*_PATH, index, "hook"), report)
    standing = {one["name"] for one in hooks if not one.get("rules")}
    webhooks = set[str]()
    for each in declared:
        if not isinstance(each.message, v1.ValidatingWebhookConfiguration | v1.MutatingWebhookConfiguration):
            continue
        stated: list[v1.ValidatingWebhook | v1.MutatingWebhook] = list(each.message.webhooks)
        for index, webhook in enumerate(stated):
            webhooks.add(webhook.name)
            if webhook.name not in standing and servers.webhooks != CALL:
                each.complain(
                    f"webhooks[{index}].clientConfig",
                    f"webhook {webhook.name} is a process outside, which nobody can ask in virtual time",
                    f"let a function stand for it: apiServers.admissionHooks: [{{name: {webhook.name}, hook: "
                    "module:function}]",
                )
    for index, hook in enumerate(hooks):
        if not hook.get("rules") and hook["name"] not in webhooks:
            text = f"there is no webhook {hook['name']} that it could stand for, and it has no rules of its own"
            report.add((*_PATH, index, "name"), text)


def check_conversions(servers: ApiServers, declared: Iterable[Declared], report: Report) -> None:
    """As :func:`check`, of definitions with the strategy Webhook."""
    hooks = [one for one in servers.conversion_hooks if one is not INVALID]
    for index, hook in enumerate(hooks):
        _check_function(hook["hook"], (*_CONVERSIONS, index, "hook"), report)
    standing = {one["name"] for one in hooks}
    converted = set[str]()
    for each in declared:
        message = each.message
        if not isinstance(message, CustomResourceDefinition) or message.spec.conversion.strategy != WEBHOOK:
            continue
        name = message.metadata.name
        converted.add(name)
        if name not in standing and servers.webhooks != CALL:
            each.complain(
                "spec.conversion.webhook",
                f"the webhook that converts {name} is a process outside, which nobody can ask in virtual time",
                f"let a function stand for it: apiServers.conversionHooks: [{{name: {name}, hook: module:function}}]",
            )
    for index, hook in enumerate(hooks):
        if hook["name"] not in converted:
            text = f"there is no definition {hook['name']} in manifests with the conversion strategy {WEBHOOK}"
            report.add((*_CONVERSIONS, index, "name"), text)


def _check_function(name: str, path: Path, report: Report) -> None:
    if not user_code.NAME.fullmatch(name):
        report.add(path, f"must be module:function, not {name!r}")
        return
    try:
        found = user_code.load(name)
    except (ImportError, AttributeError) as error:
        report.add(path, f"{name} cannot be loaded: {error}")
        return
    if not callable(found):
        report.add(path, f"{name} is no function")
