"""Brings the gateway's objects into the state that a recorded exchange presupposes.

Controllers, and whoever wrote past the recorder, changed objects between the recorded requests. What an object was
before a request is known from the last answer or watch event that showed it; what it was at a read, from the answer
itself. Objects are written through the gateway, as any client would, and only if they differ.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from kemu.emulated.gateway.verbs import calls
from kemu.emulated.objects.resources import Resource
from tests.gateway.replays import applications, wires
from tests.gateway.replays.identities import Identities
from tests.gateway.replays.recordings import Key, Record

_SERVERS = {
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "managedFields",
    "selfLink",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
}
_SIMPLE = {
    "Pod": {"spec": {"containers": [{"name": "c", "image": "nginx"}]}},
    "Deployment": {
        "spec": {
            "selector": {"matchLabels": {"app": "x"}},
            "template": {
                "metadata": {"labels": {"app": "x"}},
                "spec": {"containers": [{"name": "c", "image": "nginx"}]},
            },
        }
    },
    "ReplicaSet": {
        "spec": {
            "selector": {"matchLabels": {"app": "x"}},
            "template": {
                "metadata": {"labels": {"app": "x"}},
                "spec": {"containers": [{"name": "c", "image": "nginx"}]},
            },
        }
    },
    "PriorityClass": {"value": 1},
    "Service": {"spec": {"ports": [{"port": 443}]}},
}


class States:
    def __init__(self, application: applications.Application, identities: Identities) -> None:
        self._application = application
        self._identities = identities
        self._known: dict[Key, dict[str, Any]] = {}
        """As recorded."""
        self._whole: dict[tuple[Key, str], dict[str, Any]] = {}
        """By object and recorded version."""
        self._removed: dict[Key, str] = {}
        """UIDs of objects that were removed to be created anew."""
        self.troubles: list[str] = []
        """What could not be brought about for the present record."""

    # What the recording says

    def index(self, records: Iterable[Record]) -> None:
        """Objects that some watch showed whole: others may have been recorded only in part."""
        for record in records:
            place = record.where()
            if place is None or not record.is_watch:
                continue
            for frame in record.data["watch"]["frames"]:
                _, document = wires.recorded_frame(frame["f"])
                metadata = (document.value.get("metadata") or {}) if isinstance(document.value, dict) else {}
                if metadata.get("uid"):
                    self._whole[_named(place[0], metadata), metadata["resourceVersion"]] = document.value

    def observe(self, record: Record) -> None:
        """Objects that an exchange showed."""
        place = record.where()
        if place is None or record.status >= 300 or "dryRun" in record.query:
            return
        key, subresource = place
        if subresource == "binding" and record.status == 201 and key in self._known:
            asked = wires.actual(wires.recorded_request(record.data["req_body"]) or b"", "application/json").value
            self._known[key].setdefault("spec", {})["nodeName"] = asked["target"]["name"]
        document = wires.recorded_answer(record.data.get("resp_body"))
        if record.method == "DELETE" and key.name:
            value = document.value if isinstance(document.value, dict) else {}
            metadata = value.get("metadata") or {}
            is_gone = metadata.get("deletionGracePeriodSeconds") == 0 and not metadata.get("finalizers")
            if value.get("kind") == "Status" or is_gone:
                self._known.pop(key, None)
                return
        self._see(key, document.value)

    async def follow(self, record: Record, frame: Any) -> None:
        """A watch event that an exchange of the recording showed: if no replayed write has led to it, somebody who was
        not recorded wrote; so write it here. Of some events only the beginning was recorded: then any change will do.
        """
        place = record.where()
        kind, document = wires.recorded_frame(frame)
        row = row_of(place[0]) if place is not None else None
        if place is None or row is None or document.kind != row.kind:
            return
        whole = document.value if isinstance(document.value, dict) else None
        metadata = (whole.get("metadata") or {}) if whole is not None else document.metadata
        named = _named(place[0], metadata)
        version = metadata.get("resourceVersion")
        if not metadata.get("name") or self._identities.has_version(version):
            return
        self.troubles = []
        if whole is None:
            whole = self._whole.get((named, str(version)))
        if kind == "DELETED":
            await self._remove(named)
        elif kind not in ("ADDED", "MODIFIED"):
            return
        elif whole is not None:
            await self._ensure(named, whole)
        elif (found := await self._get(named)) is None:
            await self._ensure(named, self._known_or_simple(named, row, metadata))
        elif kind == "MODIFIED":
            merge = {"content-type": "application/merge-patch+json"}
            await self._ask("PATCH", named.path, {"metadata": {"annotations": {"replayed": version}}}, merge)
            self._identities.learn({"metadata": metadata}, found)

    def _see(self, key: Key, value: Any) -> None:
        row = row_of(key)
        if row is None or not isinstance(value, dict):
            return
        if value.get("kind") == row.kind and (value.get("metadata") or {}).get("name"):
            self._known[_named(key, value["metadata"])] = value
        elif value.get("kind") == f"{row.kind}List":
            for item in value.get("items") or []:
                whole = {"kind": row.kind, "apiVersion": row.api_version, **item}
                self._known[_named(key, item["metadata"])] = whole
        elif value.get("kind") == "Table":
            for line in value.get("rows") or []:
                held = line.get("object") or {}
                if held.get("kind") == row.kind:
                    self._known[_named(key, held["metadata"])] = held

    # What the gateway is brought to

    async def prepare(self, record: Record) -> None:
        self.troubles = []
        place = record.where()
        if place is None:
            return
        key, subresource = place
        row = row_of(key)
        if row is None or ("dryRun" in record.query and not key.name):
            return
        document = wires.recorded_answer(record.data.get("resp_body"))
        await self._prepare_namespace(record, key, document)
        if record.is_watch:
            await self._prepare_watch(record, key)
        elif not key.name and record.method == "GET":
            await self._prepare_list(record, key, document)
        elif not key.name and record.method == "POST":
            await self._prepare_create(record, key)
        elif key.name:
            await self._prepare_object(record, key, subresource, document)

    async def _prepare_namespace(self, record: Record, key: Key, document: wires.Document) -> None:
        if not key.namespace:
            return
        namespace = Key("api/v1", "", "namespaces", key.namespace)
        details = (document.value.get("details") or {}) if isinstance(document.value, dict) else {}
        if record.status == 404 and details.get("kind") == "namespaces":
            await self._remove(namespace)
        elif await self._get(namespace) is None:
            await self._create(namespace, {"metadata": {"name": key.namespace}})

    async def _prepare_watch(self, record: Record, key: Key) -> None:
        for frame in record.data["watch"]["frames"]:
            if frame["t"] > record.time_s + 0.1:
                break
            kind, document = wires.recorded_frame(frame["f"])
            if kind != "ADDED" or not isinstance(document.value, dict):
                break
            if "resourceVersion=" in record.query and "resourceVersion=0" not in record.query:
                break
            if (document.value.get("metadata") or {}).get("name"):
                await self._ensure(_named(key, document.value["metadata"]), document.value)

    async def _prepare_list(self, record: Record, key: Key, document: wires.Document) -> None:
        row = row_of(key)
        value = wires.beginning(document.prefix) if document.prefix else document.value
        if row is None or record.status != 200 or not isinstance(value, dict):
            return
        if document.prefix:
            for name in ("items", "rows"):
                # The last one may lack its end.
                value[name] = (value.get(name) or [])[:-1]
        wanted: list[tuple[Key, dict[str, Any] | None]] = []
        if value.get("kind") == "Table":
            for line in value.get("rows") or []:
                metadata = (line.get("object") or {}).get("metadata")
                if metadata is None:
                    return
                whole = line["object"] if line["object"].get("kind") == row.kind else None
                named = _named(key, metadata)
                wanted.append((named, whole or self._known_or_simple(named, row, metadata)))
        elif value.get("kind") in (f"{row.kind}List", "PartialObjectMetadataList"):
            for item in value.get("items") or []:
                named = _named(key, item["metadata"])
                partial = value["kind"] == "PartialObjectMetadataList"
                whole = self._known_or_simple(named, row, item["metadata"]) if partial else item
                wanted.append((named, {"kind": row.kind, "apiVersion": row.api_version, **whole}))
        else:
            return
        is_part = document.prefix or "continue=" in record.query or (value.get("metadata") or {}).get("continue")
        if not is_part:
            await self._remove_others(key, {named for named, _ in wanted}, record.query)
        elif not document.prefix and "continue=" not in record.query and wanted:
            # The first page holds what sorts first.
            last = wanted[-1][0]
            query = re.sub(r"(^|&)limit=\d+", "", record.query)
            await self._remove_others(key, {named for named, _ in wanted}, query, (last.namespace, last.name))
        for named, whole in wanted:
            if whole is not None:
                await self._ensure(named, whole)

    async def _prepare_create(self, record: Record, key: Key) -> None:
        name = self._name_in(record)
        if not name:
            return
        named = Key(key.prefix, key.namespace, key.resource, name)
        if record.status == 201:
            if await self._get(named) is not None:
                await self._remove(named)
        elif record.status == 409 and await self._get(named) is None:
            await self._ensure(named, self._known_or_simple(named, row_of(key), {"name": name}))

    async def _prepare_object(self, record: Record, key: Key, subresource: str, document: wires.Document) -> None:
        row = row_of(key)
        assert row is not None
        value = document.value if isinstance(document.value, dict) else {}
        creates = record.status == 201 and record.method in ("PUT", "PATCH")
        details = value.get("details") or {}
        if creates or (record.status == 404 and details.get("name") == key.name):
            if await self._get(key) is not None:
                await self._remove(key)
            return
        if record.status == 404:
            return
        shown: dict[str, Any] | None = None
        if value.get("kind") == row.kind and (value.get("metadata") or {}).get("name"):
            shown = value
        elif value.get("kind") == "Table" and value.get("rows"):
            held = value["rows"][0].get("object") or {}
            shown = held if held.get("kind") == row.kind else None
        known = self._known.get(key)
        if record.method == "GET" and shown is not None:
            await self._ensure(key, shown)
            return
        if record.method == "DELETE" and shown is not None:
            await self._ensure(key, _before_deletion(shown, known))
            await self._learn_uid(record, key)
            return
        uid = ((shown or {}).get("metadata") or {}).get("uid")
        if known is None or (uid and (known.get("metadata") or {}).get("uid") not in (None, uid)):
            known = shown
        if known is None:
            if await self._get(key) is None:
                await self._ensure(key, self._known_or_simple(key, row, {"name": key.name}))
        else:
            if shown is not None and not subresource and shown.get("status"):
                # The request left the status as it was.
                known = {**known, "status": shown["status"]}
            await self._ensure(key, known)
        if subresource == "binding":
            await self._prepare_binding(record, key)
        if record.status < 300:
            await self._learn_uid(record, key)
        if subresource == "eviction":
            await self._prepare_eviction(record, key)

    async def _learn_uid(self, record: Record, key: Key) -> None:
        """A request that was carried out said the right UID."""
        document = wires.actual(wires.recorded_request(record.data.get("req_body")) or b"", "application/json").value
        if not isinstance(document, dict):
            return
        uid = (document.get("metadata") or {}).get("uid") or (document.get("preconditions") or {}).get("uid")
        if uid and uid not in self._identities.uids and (actual := await self._get(key)) is not None:
            self._identities.uids[uid] = actual["metadata"]["uid"]

    async def _prepare_binding(self, record: Record, key: Key) -> None:
        pod = await self._get(key)
        if pod is None:
            return
        is_bound = bool(pod.get("spec", {}).get("nodeName"))
        if record.status == 201 and is_bound:
            unbound = json.loads(json.dumps(pod))
            unbound["spec"].pop("nodeName")
            unbound.pop("status", None)
            await self._remove(key)
            await self._create(key, unbound)
        elif record.status == 409 and not is_bound and "uid" not in str(record.data.get("resp_body")).lower():
            bound = re.search(r'assigned to node \\*"([^"\\]+)', str(record.data.get("resp_body")))
            target = {"kind": "Node", "name": bound[1] if bound else "n0"}
            body = {"kind": "Binding", "apiVersion": "v1", "metadata": {"name": key.name}, "target": target}
            await self._ask("POST", f"{key.path}/binding", body)

    async def _prepare_eviction(self, record: Record, key: Key) -> None:
        """A budget that forbids the eviction, or allows it, and a running pod that it covers."""
        pod = await self._get(key)
        if pod is None:
            return
        allowed = 0 if record.status == 429 else 1
        budgets = Key("apis/policy/v1", key.namespace, "poddisruptionbudgets", "")
        for budget in await self._list(budgets):
            labels = budget["spec"]["selector"]["matchLabels"]
            if allowed == 0:
                pod["metadata"]["labels"] = labels
                pod = await self._put(key, pod, "") or pod
                ready = {"type": "Ready", "status": "True"}
                pod["status"] = {**pod["status"], "phase": "Running", "conditions": [ready]}
                pod = await self._put(key, pod, "/status") or pod
            budget["status"] = {
                "disruptionsAllowed": allowed,
                "observedGeneration": budget["metadata"].get("generation", 1),
                "currentHealthy": 2,
                "desiredHealthy": 2 - allowed,
                "expectedPods": 2,
            }
            await self._put(_named(budgets, budget["metadata"]), budget, "/status")

    # Single objects

    async def _ensure(self, key: Key, recorded: dict[str, Any] | None) -> None:
        row = row_of(key)
        if recorded is None or row is None:
            return
        if row.kind == "Event":
            wanted = self._translated(recorded)
            if (found := await self._get(key)) is None or found.get("involvedObject") != wanted.get("involvedObject"):
                await self._remove(key)
                await self._create(key, wanted)
            return
        wanted = self._translated(recorded)
        is_deleted = bool((recorded.get("metadata") or {}).get("deletionTimestamp"))
        actual = await self._get(key)
        if actual is not None and (actual.get("metadata") or {}).get("deletionTimestamp") and not is_deleted:
            await self._remove(key)
            actual = None
        if actual is None:
            actual = await self._create(key, wanted)
            if actual is None:
                return
        elif _without_servers(actual, False) != _without_servers(wanted, False):
            servers = {name: inner for name, inner in actual["metadata"].items() if name in _SERVERS}
            body = {**wanted, "metadata": {**wanted["metadata"], **servers}}
            changed = await self._put(key, body, "")
            if changed is None:
                await self._remove(key)
                changed = await self._create(key, wanted)
            if changed is None:
                return
            actual = changed
        if row.has_status and wanted.get("status") and actual.get("status") != wanted["status"]:
            body = {**actual, "status": wanted["status"]}
            actual = await self._put(key, body, "/status") or actual
        if is_deleted and not actual["metadata"].get("deletionTimestamp"):
            grace = recorded["metadata"].get("deletionGracePeriodSeconds", 30)
            await self._ask(
                "DELETE", key.path, {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": grace or 1}
            )
            actual = await self._get(key) or actual
        self._identities.learn(recorded, actual)

    async def _create(self, key: Key, wanted: dict[str, Any]) -> dict[str, Any] | None:
        body = {**_without_servers(wanted, True), **_head(key)}
        body["metadata"]["name"] = key.name
        if key.namespace:
            body["metadata"]["namespace"] = key.namespace
        status, answer = await self._ask("POST", key.collection, body)
        if status not in (200, 201):
            self.troubles.append(f"create {key.path}: {status} {answer.get('message', '')[:300]}")
            return None
        if before := self._removed.pop(key, ""):
            self._identities.replaced(before, answer["metadata"]["uid"])
        return answer

    async def _put(self, key: Key, body: dict[str, Any], subresource: str) -> dict[str, Any] | None:
        status, answer = await self._ask("PUT", key.path + subresource, {**body, **_head(key)})
        if status != 200:
            self.troubles.append(f"put {key.path}{subresource}: {status} {answer.get('message', '')[:300]}")
            return None
        return answer

    async def _remove(self, key: Key) -> None:
        merge = {"content-type": "application/merge-patch+json"}
        found = await self._get(key)
        if found is None:
            return
        self._removed[key] = found["metadata"]["uid"]
        if found["metadata"].get("finalizers"):
            await self._ask("PATCH", key.path, {"metadata": {"finalizers": None}}, merge)
        await self._ask("DELETE", key.path, {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})
        if key.resource == "namespaces" and (rest := await self._get(key)) is not None:
            rest["spec"] = {}
            await self._ask("PUT", f"{key.path}/finalize", rest)
        if await self._get(key) is not None:
            self.troubles.append(f"delete {key.path}: still there")

    async def _remove_others(
        self, key: Key, wanted: set[Key], query: str, until: tuple[str, str] | None = None
    ) -> None:
        for item in await self._list(key, self._identities.in_query(query)):
            named = _named(key, item["metadata"])
            if until is not None and (named.namespace, named.name) > until:
                continue
            if named not in wanted and key.resource not in ("namespaces", "events"):
                await self._remove(named)

    async def _list(self, key: Key, query: str = "") -> list[dict[str, Any]]:
        status, answer = await self._ask("GET", key.collection, query=query)
        return (answer.get("items") or []) if status == 200 else []

    async def _get(self, key: Key) -> dict[str, Any] | None:
        status, answer = await self._ask("GET", key.path)
        return answer if status == 200 else None

    async def _ask(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None, query: str = ""
    ) -> tuple[int, dict[str, Any]]:
        given = {
            "accept": "application/json",
            "user-agent": "setup",
            "content-type": "application/json",
            **(headers or {}),
        }
        data = None if body is None else json.dumps(body).encode()
        exchange = await applications.ask(self._application, method, path, query, given, data)
        try:
            return exchange.status, json.loads(exchange.body)
        except ValueError:
            return exchange.status, {"message": exchange.body.decode(errors="replace")}

    def _translated(self, recorded: dict[str, Any]) -> dict[str, Any]:
        """With the UIDs of here."""
        found: dict[str, Any] = json.loads(self._identities.in_text(json.dumps(recorded)))
        return found

    def _known_or_simple(self, key: Key, row: Resource | None, metadata: dict[str, Any]) -> dict[str, Any]:
        known = self._known.get(key)
        if known is not None:
            return known
        return {"metadata": metadata, **_SIMPLE.get(row.kind if row else "", {})}

    def _name_in(self, record: Record) -> str:
        document = wires.recorded_answer(record.data.get("resp_body")) if record.status == 201 else wires.Document()
        value: Any = document.value
        if not isinstance(value, dict):
            try:
                body = wires.recorded_request(record.data.get("req_body")) or b""
            except ValueError:
                return ""
            value = wires.actual(body, "application/json").value
        if not isinstance(value, dict):
            return ""
        return str((value.get("metadata") or {}).get("name") or "")


def row_of(key: Key) -> Resource | None:
    return calls.BY_URL.get((key.api_version, key.resource))


def _before_deletion(shown: dict[str, Any], known: dict[str, Any] | None) -> dict[str, Any]:
    """What an object was that a delete answered with: with a deletion of before, if there was one."""
    metadata = {name: inner for name, inner in shown["metadata"].items() if not name.startswith("deletion")}
    before = (known or {}).get("metadata") or {}
    if before.get("uid") == metadata.get("uid"):
        metadata |= {
            name: inner for name, inner in before.items() if name.startswith("deletion") or name == "finalizers"
        }
    else:
        metadata["finalizers"] = [
            one for one in metadata.get("finalizers") or [] if one not in ("orphan", "foregroundDeletion")
        ]
    return {**shown, "metadata": metadata}


def _named(key: Key, metadata: dict[str, Any]) -> Key:
    return Key(key.prefix, metadata.get("namespace", key.namespace), key.resource, metadata.get("name", ""))


def _head(key: Key) -> dict[str, str]:
    row = row_of(key)
    assert row is not None
    return {"apiVersion": row.api_version, "kind": row.kind}


def _without_servers(value: dict[str, Any], status: bool) -> dict[str, Any]:
    """Without what the API server sets; ``status``: with the status."""
    metadata = {name: inner for name, inner in (value.get("metadata") or {}).items() if name not in _SERVERS}
    rest = {name: inner for name, inner in value.items() if name not in ("metadata", "kind", "apiVersion")}
    if not status:
        rest.pop("status", None)
    return {"metadata": metadata, **rest}
