"""Policies whose expressions have types that do not fit, and what Kubernetes' controller says of them in their status.

python -m tests.admission.type_checks KUBECONFIG      # asks a real cluster, and writes type_checks.json
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests import json_files
from tests.admission import recorder

FILE = Path(__file__).with_name("type_checks.json")
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "typed.types.example.com"},
    "spec": {
        "group": "types.example.com",
        "scope": "Cluster",
        "names": {"plural": "typed", "singular": "typed", "kind": "Typed"},
        "versions": [
            {
                "name": name,
                "served": True,
                "storage": name == "v1",
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "size": {"type": size},
                                    "either": {"x-kubernetes-int-or-string": True},
                                    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                                    "when": {"type": "string", "format": "date-time"},
                                },
                            }
                        },
                    }
                },
            }
            for name, size in (("v1", "integer"), ("v2", "string"))
        ],
    },
}


def rule(group: str, version: str, *resources: str) -> dict[str, Any]:
    return {"apiGroups": [group], "apiVersions": [version], "operations": ["*"], "resources": list(resources)}


APPS, CORE, TYPED = rule("apps", "v1", "deployments"), rule("", "v1", "pods"), rule("types.example.com", "v1", "typed")
FIVE = ["deployments", "replicasets", "statefulsets", "daemonsets", "controllerrevisions"]
CASES: list[tuple[list[dict[str, Any]], list[str], dict[str, Any]]] = [
    ([APPS], ["object.spec.replicas > '1'", "object.spec.foo == 1", "object.spec.replicas > 1"], {}),
    ([APPS],
     ["object.spec.replicas == 1 && oldObject.spec.nope", "object.metadata.name == '' || object.metadata.name > 1"],
     {}),
    ([rule("", "v1", "services", "pods")], ["object.spec.replicas > 1", "object.spec.nodeName == 'a'"], {}),
    ([rule("*", "v1", "pods")], ["object.nope == 1"], {}),
    ([rule("", "*", "pods")], ["object.nope == 1"], {}),
    ([rule("", "v1", "*", "pods/exec")], ["object.nope == 1"], {}),
    ([rule("", "v1", "nothing")], ["object.nope == 1"], {}),
    ([CORE], ["params.data.foo.bar == 1", "params.nope == 1"],
     {"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}}),
    ([CORE], ["params.nope.nope == 1"], {"paramKind": {"apiVersion": "nothing.example.com/v1", "kind": "Nope"}}),
    ([rule("", "v1", "services")], ["object.spec.ports[0].targetPort == 1", "object.spec.ports[0].port == 'x'"], {}),
    ([CORE], ["object.spec.containers.all(c, c.resources.limits['cpu'] == '1')"], {}),
    ([CORE], ["object.spec.containers.all(c, c.resources.limits['cpu'] == 1)", "object.spec.containers == ''"], {}),
    ([CORE], ["object.metadata.creationTimestamp > 1", "object.metadata.labels.foo == 1"], {}),
    ([CORE], ["variables.a > 'x'"], {"variables": [{"name": "a", "expression": "object.spec.priority"}]}),
    ([CORE], ["variables.a == 'x'"], {"variables": [{"name": "a", "expression": "object.spec.foo"}]}),
    ([TYPED],
     ["object.spec.size == 'x'", "object.spec.nope == 1", "object.spec.either == []", "object.spec.free.a == 1"],
     {}),
    ([rule("types.example.com", "v2", "typed"), TYPED], ["object.spec.size == 'x' || object.spec.when == 1"], {}),
    ([CORE], ["request.options.foo == object.nope", "request.name == object.spec.priority"], {}),
    ([CORE], ["authorizer.group(object.spec.priority).resource('x').check('get').allowed()"], {}),
    ([rule("", "v1", "secrets")], ["object.data['a'] == 'x'", "object.type == 1"], {}),
    ([rule("apiextensions.k8s.io", "v1", "customresourcedefinitions")],
     ["object.spec.versions[0].schema.openAPIV3Schema.properties['a'].foo == 1", "object.spec.scope == 1"], {}),
    ([rule("events.k8s.io", "v1", "events"), rule("", "v1", "events")],
     ["object.note == 1 || object.message == 1"], {}),
    ([rule("autoscaling", "v1", "horizontalpodautoscalers"), rule("autoscaling", "v2", "horizontalpodautoscalers")],
     ["object.spec.metrics == 'x'"], {}),
    ([rule("apps", "v1", *FIVE), rule("", "v1", "pods", "services", "secrets", "configmaps", "nodes", "events")],
     ["object.nope == 1"], {}),
    ([APPS],
     ["dyn(object).anything == 1", "has(object.spec.nope)", "object.kind == 1", "object.spec.template.foo == 1"], {}),
]  # fmt: skip


def policy(number: int) -> dict[str, Any]:
    rules, expressions, more = CASES[number]
    validations = [{"expression": one, "messageExpression": "string(object.spec.message)"} for one in expressions]
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": f"types-{number}"},
        "spec": {"matchConstraints": {"resourceRules": rules}, "validations": validations, **more},
    }


def told(policy: dict[str, Any]) -> Any:
    return policy.get("status")


def main(kubeconfig: Path) -> None:
    config = yaml.safe_load(kubeconfig.read_text())
    server = config["clusters"][0]["cluster"]["server"]
    with httpx.Client(verify=recorder._context(config), base_url=server, timeout=40) as http:
        http.post(DEFINITIONS, json=DEFINITION).raise_for_status()
        time.sleep(3)
        found = []
        for number in range(len(CASES)):
            made = http.post(POLICIES, json=policy(number))
            found.append(made.json()["message"] if made.status_code != 201 else None)
        time.sleep(5)
        for number, message in enumerate(found):
            if message is None:
                found[number] = told(http.get(f"{POLICIES}/types-{number}").json())
                http.delete(f"{POLICIES}/types-{number}")
        http.delete(f"{DEFINITIONS}/typed.types.example.com")
    json_files.write(FILE, found, sort_keys=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
