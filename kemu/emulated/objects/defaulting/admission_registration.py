"""The defaults of admissionregistration.k8s.io."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.message import Message

from kemu.messages.k8s import admissionregistration_v1_pb2 as v1
from kemu.messages.k8s.objects import KubernetesObject

_DEFAULT_PORT, _DEFAULT_TIMEOUT_S = 443, 10


def _default_configuration(configuration: v1.ValidatingWebhookConfiguration | v1.MutatingWebhookConfiguration) -> None:
    for webhook in configuration.webhooks:
        default_webhook(webhook)


def default_webhook(webhook: v1.ValidatingWebhook | v1.MutatingWebhook) -> None:
    if not webhook.HasField("failurePolicy"):
        webhook.failurePolicy = "Fail"
    _default_selection(webhook)
    if not webhook.HasField("timeoutSeconds"):
        webhook.timeoutSeconds = _DEFAULT_TIMEOUT_S
    if isinstance(webhook, v1.MutatingWebhook) and not webhook.HasField("reinvocationPolicy"):
        webhook.reinvocationPolicy = "Never"
    client = webhook.clientConfig
    if client.HasField("service") and not client.service.HasField("port"):
        client.service.port = _DEFAULT_PORT
    for rule in webhook.rules:
        _default_rule(rule)


def _default_selection(match: v1.MatchResources | v1.ValidatingWebhook | v1.MutatingWebhook) -> None:
    if not match.HasField("matchPolicy"):
        match.matchPolicy = "Equivalent"
    match.namespaceSelector.SetInParent()
    match.objectSelector.SetInParent()


def _default_rule(rule: v1.RuleWithOperations) -> None:
    if not rule.rule.HasField("scope"):
        rule.rule.scope = "*"


def _default_match(match: v1.MatchResources) -> None:
    _default_selection(match)
    for rule in (*match.resourceRules, *match.excludeResourceRules):
        _default_rule(rule.ruleWithOperations)


def _default_policy(policy: v1.ValidatingAdmissionPolicy | v1.MutatingAdmissionPolicy) -> None:
    spec = policy.spec
    if not spec.HasField("failurePolicy"):
        spec.failurePolicy = "Fail"
    if spec.HasField("matchConstraints"):
        _default_match(spec.matchConstraints)


def _default_binding(binding: v1.ValidatingAdmissionPolicyBinding | v1.MutatingAdmissionPolicyBinding) -> None:
    if binding.spec.HasField("matchResources"):
        _default_match(binding.spec.matchResources)


def _prepare(obj: KubernetesObject) -> None:
    obj.metadata.generation = 1
    if isinstance(obj, v1.ValidatingAdmissionPolicy):
        obj.ClearField("status")


FILL: dict[type[Message], Callable[[Any], None]] = {
    v1.ValidatingWebhookConfiguration: _default_configuration,
    v1.MutatingWebhookConfiguration: _default_configuration,
    v1.ValidatingAdmissionPolicy: _default_policy,
    v1.MutatingAdmissionPolicy: _default_policy,
    v1.ValidatingAdmissionPolicyBinding: _default_binding,
    v1.MutatingAdmissionPolicyBinding: _default_binding,
}

PREPARE: dict[type[Message], Callable[[Any], None]] = dict.fromkeys(FILL, _prepare)
