"""What Kubernetes' sources say as documents: discovery and schemas (``api/``), and how two versions of such differ."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_STABLE = re.compile(r"__v\d+_openapi\.json$")
_RESOURCES = re.compile(r"^(?:api|apis__(?P<group>[\w.-]+))__(?P<version>v\w+)$")


def schemas(kubernetes: Path) -> dict[str, Any]:
    """The schemas of the stable versions, without descriptions."""
    found: dict[str, Any] = {}
    for file in sorted((kubernetes / "api/openapi-spec/v3").glob("*.json")):
        if _STABLE.search(file.name):
            found |= json.loads(file.read_text()).get("components", {}).get("schemas", {})
    bare: dict[str, Any] = _without_descriptions(dict(sorted(found.items())))
    return bare


def packed(document: Any) -> bytes:
    """As the tests keep documents: the same bytes for the same document."""
    text = json.dumps(document, separators=(",", ":"), sort_keys=True)
    return gzip.compress(text.encode(), 9, mtime=0)


def _without_descriptions(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_descriptions(one)
            for key, one in value.items()
            if key != "description" or not isinstance(one, str)
        }
    return [_without_descriptions(one) for one in value] if isinstance(value, list) else value


def resources(kubernetes: Path) -> dict[str, str]:
    """What is served with all feature gates and versions on: kind, verbs and names, by group version and resource."""
    found = {}
    for file in sorted((kubernetes / "api/discovery").glob("*.json")):
        if matched := _RESOURCES.match(file.stem):
            version = f"{matched['group']}/{matched['version']}" if matched["group"] else matched["version"]
            for one in json.loads(file.read_text())["resources"]:
                words = [one["kind"], "namespaced" if one["namespaced"] else "cluster", *one["verbs"]]
                extra = [f"{key}={','.join(one[key])}" for key in ("shortNames", "categories") if one.get(key)]
                found[f"{version} {one['name']}"] = " ".join([*words, *extra])
    return found


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    """A line for each key that comes, goes or has another text."""
    for key in sorted(before.keys() | after.keys()):
        was, now = before.get(key), after.get(key)
        if was is None:
            yield f"+ {key}: {now}" if now else f"+ {key}"
        elif now is None:
            yield f"- {key}: was {was}" if was else f"- {key}"
        elif was != now:
            yield f"  {key}: {was} -> {now}"


def facts(text: str) -> dict[str, str]:
    """Of the table of types: what is said, by type and field."""
    found: dict[str, str] = {}
    owner = ""
    for line in text.splitlines():
        words = line.split()
        if line.startswith("\t"):
            name, said = (f"+ {words[1]}", "") if words[0] == "+" else (words[0], " ".join(words[1:]))
            found[f"{owner}.{name}"] = said
        elif words[:1] == ["kind"]:
            found[" ".join(words[:3])] = words[3]
        elif words:
            owner = words[1]
            found[owner] = " ".join([words[0], *words[2:]])
    return found


def defaults(text: str) -> dict[str, str]:
    """Of what ``recorder defaults`` prints: values by kind and field, with the kinds that share them as one.

    Templates of pods have the same defaults wherever they stand; only those of Pods are kept."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        version, kind, path, value = line.split(" ", 3)
        if ".template.spec." not in f".{path}" or kind == "PodTemplate":
            key = f"{version} {kind} {path}"
            found[key] = f"{found[key]} or {value}" if key in found else value
    return found


def roles(text: str) -> dict[str, str]:
    """Of ``roles.json``: a key for each rule, so that rules that come and go are told apart from others."""
    document = json.loads(text)
    found = {}

    def rules(name: str, each: list[dict[str, Any]]) -> None:
        for rule in each:
            verbs, groups, kinds = (",".join(rule[key] or ()) for key in ("verbs", "groups", "resources"))
            names = f" named {','.join(rule['names'])}" if rule.get("names") else ""
            found[f"{name}: {verbs} {kinds} of {groups or 'the core group'}{names}"] = ""

    for name, each in document["clusterRoles"].items():
        found[f"ClusterRole {name}"] = f"{len(each)} rules"
        rules(name, each)
    for namespace, named in document["roles"].items():
        for name, each in named.items():
            rules(f"{namespace}/{name}", each)
    for one in document["clusterBindings"]:
        found[f"ClusterRoleBinding of {one['role']}"] = ", ".join(one["subjects"])
    for namespace, each in document["bindings"].items():
        for one in each:
            found[f"RoleBinding of {namespace}/{one['role']}"] = ", ".join(one["subjects"])
    return found
