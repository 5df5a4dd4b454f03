"""An operator with ``kopf``: ``python -m tests.clients.programs.kopf_operator KUBECONFIG NAMESPACE``.

Two operators, a thread each as kopf wants it, and what a user does to their objects meanwhile. What counts is what
handlers are told, what kopf leaves in objects, and what its webhooks answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime as dt
import ipaddress
import json
import logging
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import kopf
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from kubernetes import client, config, watch
from kubernetes.client import ApiException

from tests.clients.programs.synchronous import Steps

GROUP, VERSION, PLURAL = "kopf.example.com", "v1", "gadgets"
WAIT_S = 20.0
ANNOTATION = "kopf.zalando.org/"
TIMER_S = 0.3


def definition(group: str, kind: str, plural: str, *, subresources: bool) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version: dict[str, Any] = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    if subresources:
        version["subresources"] = {"status": {}}
    names = {"kind": kind, "plural": plural, "singular": kind.lower()}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    return {"metadata": {"name": f"{plural}.{group}"}, "spec": spec}


class Calls:
    """What the handlers of all operators were told."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.all: list[list[Any]] = []

    def add(self, operator: str, handler: str, name: str, *details: Any) -> None:
        with self._lock:
            self.all.append([operator, handler, name, *details])

    def of(self, *, handler: str = "", name: str = "", operator: str = "") -> list[list[Any]]:
        with self._lock:
            return [
                one
                for one in self.all
                if (not handler or one[1] == handler) and (not name or one[2] == name) and operator in ("", one[0])
            ]


def plain(diff: kopf.Diff) -> list[Any]:
    return sorted([str(one[0]), list(one[1]), one[2], one[3]] for one in diff)


def registry_of(me: str, calls: Calls, server: kopf.WebhookServer | None) -> kopf.OperatorRegistry:
    registry = kopf.OperatorRegistry()
    which: dict[str, Any] = {"registry": registry}
    kind = (GROUP, VERSION, PLURAL)

    @kopf.on.startup(registry=registry)
    def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
        settings.scanning.disabled = False
        settings.background.cancellation_polling = 1
        settings.networking.error_backoffs = [0.1, 0.2, 0.5]
        settings.watching.reconnect_backoff = 0.1
        if server is not None:
            settings.admission.server = server
            settings.admission.managed = "auto.kopf.example.com"

    kopf.on.login(registry=registry)(kopf.login_with_kubeconfig)

    @kopf.index(*kind, id="sizes", **which)
    def sizes(name: str, spec: kopf.Spec, **_: Any) -> Any:
        return {spec.get("size"): name}

    @kopf.on.create(*kind, id="made", **which)
    async def made(name: str, spec: kopf.Spec, retry: int, sizes: kopf.Index[Any, Any], **_: Any) -> Any:
        calls.add(me, "create", name, retry, sorted(sizes.get(spec.get("size"), [])))
        if spec.get("flaky") and retry < 2:
            raise kopf.TemporaryError("not yet", delay=0.2)
        if spec.get("broken"):
            raise kopf.PermanentError("never")
        return {"size": spec.get("size")}

    @kopf.on.update(*kind, id="changed", **which)
    async def changed(body: kopf.Body, name: str, diff: kopf.Diff, **_: Any) -> Any:
        calls.add(me, "update", name, plain(diff))
        kopf.info(body, reason="Changed", message="it has another size")
        return {"fields": len(diff)}

    @kopf.on.field(*kind, id="resized", field="spec.size", old=kopf.PRESENT, **which)
    async def resized(name: str, old: Any, new: Any, **_: Any) -> None:
        calls.add(me, "field", name, old, new)

    @kopf.on.resume(*kind, id="resumed", **which)
    async def resumed(name: str, **_: Any) -> None:
        calls.add(me, "resume", name)

    @kopf.on.delete(*kind, id="gone", **which)
    async def gone(name: str, retry: int, **_: Any) -> None:
        calls.add(me, "delete", name, retry)

    @kopf.timer(*kind, id="ticked", interval=TIMER_S, labels={"timed": "yes"}, **which)
    async def ticked(name: str, **_: Any) -> None:
        calls.add(me, "timer", name)

    @kopf.daemon(*kind, id="lived", labels={"timed": "yes"}, cancellation_timeout=2, **which)
    async def lived(name: str, stopped: Any, **_: Any) -> None:
        calls.add(me, "daemon", name, "begins")
        while not stopped:
            await stopped.wait(0.2)
        calls.add(me, "daemon", name, "ends")

    @kopf.on.event("", "v1", "configmaps", labels={"kopf": kopf.PRESENT}, **which)
    def heard(name: str, event: Any, **_: Any) -> None:
        calls.add(me, "event", name, event["type"], dict(event["object"].get("data", {})))

    if server is not None:

        @kopf.on.validate(*kind, id="small", **which)
        def small(spec: kopf.Spec, operation: str, warnings: list[str], dryrun: bool, **_: Any) -> None:
            if spec.get("size", 0) > 10:
                raise kopf.AdmissionError("too large", code=422)
            if spec.get("size", 0) > 8:
                warnings.append(f"nearly too large, {operation}, {'dry' if dryrun else 'wet'}")

        @kopf.on.mutate(*kind, id="coloured", operation="CREATE", **which)
        def coloured(patch: kopf.Patch, spec: kopf.Spec, **_: Any) -> None:
            if "colour" not in spec:
                patch.spec["colour"] = "red"

    return registry


@contextlib.contextmanager
def operator(
    me: str, calls: Calls, namespace: str, priority: int, server: kopf.WebhookServer | None = None
) -> Iterator[None]:
    stop, ready = threading.Event(), threading.Event()
    registry = registry_of(me, calls, server)

    def body() -> None:
        asyncio.run(
            kopf.operator(
                registry=registry,
                namespaces=[namespace],
                identity=me,  # type: ignore[arg-type]
                peering_name="peers",
                priority=priority,
                stop_flag=stop,
                ready_flag=ready,
            )
        )

    thread = threading.Thread(target=body, name=me, daemon=True)
    thread.start()
    if not ready.wait(WAIT_S):
        raise TimeoutError(f"operator {me} is not ready")
    try:
        yield
    finally:
        stop.set()
        thread.join(WAIT_S)


def eventually(what: str, holds: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + WAIT_S
    while not (found := holds()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {WAIT_S:.0f} s: {what}")
        time.sleep(0.05)
    return found


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "webhooks")])
    now = dt.datetime.now(dt.UTC)
    day = dt.timedelta(days=400)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - day)
        .not_valid_after(now + day)
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, format_, none = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    certificate_file, key_file = folder / "tls.crt", folder / "tls.key"
    certificate_file.write_bytes(made.public_bytes(pem))
    key_file.write_bytes(key.private_bytes(pem, format_, none))
    return certificate_file, key_file


class User:
    """Who writes the objects that the operators look after."""

    def __init__(self, namespace: str, calls: Calls) -> None:
        self.steps = Steps()
        self._namespace = namespace
        self._calls = calls
        self._custom = client.CustomObjectsApi()
        self.core = client.CoreV1Api()

    def get(self, name: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = self._custom.get_namespaced_custom_object(
                GROUP, VERSION, self._namespace, PLURAL, name
            )
        except ApiException as error:
            if error.status == 404:
                return None
            raise
        return found

    def create(self, name: str, labels: dict[str, str] | None = None, **spec: Any) -> Any:
        body = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Gadget", "spec": spec}
        body["metadata"] = {"name": name, "labels": labels or {}}
        return self._custom.create_namespaced_custom_object(GROUP, VERSION, self._namespace, PLURAL, body)

    def patch(self, name: str, **spec: Any) -> Any:
        body = {"spec": spec}
        return self._custom.patch_namespaced_custom_object(GROUP, VERSION, self._namespace, PLURAL, name, body)

    def delete(self, name: str) -> Any:
        return self._custom.delete_namespaced_custom_object(GROUP, VERSION, self._namespace, PLURAL, name)

    def settled(self, name: str, status: str = "") -> dict[str, Any]:
        """The object, once kopf has taken away what it notes while it goes on."""

        seen: list[Any] = [None]

        def look() -> dict[str, Any] | None:
            found = seen[0] = self.get(name)
            if found is None or (status and status not in found.get("status", {})):
                return None
            notes = [one for one in found["metadata"].get("annotations", {}) if one.startswith(ANNOTATION)]
            return found if notes == [f"{ANNOTATION}last-handled-configuration"] else None

        try:
            return eventually(f"{name} is handled", look)  # type: ignore[no-any-return]
        except TimeoutError as error:
            raise TimeoutError(f"{error}: {seen[0]}; {self._calls.all[-20:]}") from None

    def shown(self, step: str, found: dict[str, Any]) -> None:
        annotations = found["metadata"]["annotations"]
        last = json.loads(annotations[f"{ANNOTATION}last-handled-configuration"])
        shown = [found["metadata"].get("finalizers"), found["spec"], found.get("status"), last]
        self.steps.add(step, shown)

    def notes(self, name: str, revision: str) -> list[Any]:
        """What kopf noted in the object of the progress of its handlers, version by version."""
        found = []
        events = watch.Watch().stream(
            self._custom.list_namespaced_custom_object,
            GROUP,
            VERSION,
            self._namespace,
            PLURAL,
            field_selector=f"metadata.name={name}",
            resource_version=revision,
            timeout_seconds=1,
        )
        for event in events:
            annotations = event["object"]["metadata"].get("annotations", {})
            found.append({key.removeprefix(ANNOTATION): _note(text) for key, text in sorted(annotations.items())})
        return found

    def called(self, step: str, **which: str) -> None:
        self.steps.add(step, self._calls.of(**which))

    def peers(self) -> dict[str, int]:
        found: Any = self._custom.get_namespaced_custom_object(
            "kopf.dev", "v1", self._namespace, "kopfpeerings", "peers"
        )
        return {name: one["priority"] for name, one in found.get("status", {}).items()}

    def refused(self, step: str, call: Callable[[], Any]) -> None:
        try:
            call()
        except ApiException as error:
            self.steps.add(step, [error.status, json.loads(error.body)["message"]])
        else:
            self.steps.add(step, "ok")

    def define(self) -> None:
        self.core.create_namespace({"metadata": {"name": self._namespace}})
        extensions = client.ApiextensionsV1Api()
        made = (
            definition(GROUP, "Gadget", PLURAL, subresources=True),
            definition("kopf.dev", "KopfPeering", "kopfpeerings", subresources=False),
        )
        for one in made:
            extensions.create_custom_resource_definition(one)

        def established() -> bool:
            return all(
                any(
                    one.type == "Established" and one.status == "True"
                    for one in extensions.read_custom_resource_definition(each["metadata"]["name"]).status.conditions
                    or ()
                )
                for each in made
            )

        eventually("the definitions are established", established)
        peering = {"apiVersion": "kopf.dev/v1", "kind": "KopfPeering", "metadata": {"name": "peers"}}
        self._custom.create_namespaced_custom_object("kopf.dev", "v1", self._namespace, "kopfpeerings", peering)


def _note(text: str) -> Any:
    """Without times."""
    if not text.startswith("{"):
        return "a time"
    note = json.loads(text)
    return [note.get("retries"), note.get("message")]


def first_life(user: User, calls: Calls, namespace: str) -> None:
    steps = user.steps
    admissions = client.AdmissionregistrationV1Api()

    def hooks() -> Any:
        found = [
            *admissions.list_validating_webhook_configuration().items,
            *admissions.list_mutating_webhook_configuration().items,
        ]
        mine = [one for one in found if one.metadata.name == "auto.kopf.example.com"]
        return [hook for one in mine for hook in one.webhooks or ()] if len(mine) == 2 else None

    found = eventually("the webhooks are configured", lambda: len(hooks() or ()) == 2 and hooks())
    steps.add(
        "webhooks",
        [
            [one.name, one.failure_policy, one.side_effects, one.rules[0].operations, one.timeout_seconds]
            for one in found
        ],
    )
    steps.add("peers", eventually("a peer", user.peers))

    made = user.create("a", {"timed": "yes"}, size=1)
    steps.add("mutated", made["spec"])
    user.shown("created", user.settled("a", "made"))
    user.called("create a", handler="create", name="a")
    eventually("three ticks", lambda: len(calls.of(handler="timer", name="a")) >= 3)
    user.called("daemon", handler="daemon")
    user.refused("too large", lambda: user.create("b", size=11))
    user.refused("too large now", lambda: user.patch("a", size=12))
    user.patch("a", size=2, colour="blue")
    eventually("the update", lambda: calls.of(handler="update", name="a"))
    user.shown("updated", user.settled("a", "changed"))
    user.called("update a", handler="update", name="a")
    user.called("field a", handler="field", name="a")

    flaky = user.create("flaky", size=1, flaky=True)
    user.shown("flaky", user.settled("flaky", "made"))
    steps.add("notes on flaky", user.notes("flaky", flaky["metadata"]["resourceVersion"]))
    user.called("create flaky", handler="create", name="flaky")
    user.create("broken", size=3, broken=True)
    eventually("an attempt", lambda: calls.of(handler="create", name="broken"))
    user.shown("broken", user.settled("broken"))
    user.called("create broken", handler="create", name="broken")

    user.core.create_namespaced_config_map(
        namespace, {"metadata": {"name": "m", "labels": {"kopf": "x"}}, "data": {"a": "1"}}
    )
    user.core.patch_namespaced_config_map("m", namespace, {"data": {"a": "2"}})
    user.core.delete_namespaced_config_map("m", namespace)
    eventually("all events", lambda: len(calls.of(handler="event", name="m")) == 3)
    user.called("events of m", handler="event", name="m")


class Turns(logging.Handler):
    """What kopf says of operators that pause in favour of others, and go on."""

    def __init__(self) -> None:
        super().__init__()
        self._said: list[str] = []
        logger = logging.getLogger("kopf._core.engines.peering")
        logger.setLevel(logging.INFO)
        logger.propagate = False
        logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self._said.append(record.getMessage())

    def wait(self, beginning: str) -> None:
        """For one that begins so."""
        eventually(beginning, lambda: any(said.startswith(beginning) for said in self._said))


def second_life(user: User, calls: Calls, namespace: str) -> None:
    """Another operator of the same priority class comes up; it resumes what the first one left."""
    turns = Turns()
    eventually("all are resumed", lambda: len(calls.of(handler="resume", operator="second")) == 3)
    user.steps.add("resumed", sorted(calls.of(handler="resume", operator="second")))
    with operator("important", calls, namespace, priority=100):
        user.steps.add("peers", eventually("both", lambda: len(user.peers()) == 2 and user.peers()))
        turns.wait("Pausing operations")
        time.sleep(0.2)  # its watches end
        user.patch("a", size=5)
        eventually("the update", lambda: calls.of(handler="update", name="a", operator="important"))
        user.settled("a")
    eventually("one is left", lambda: list(user.peers()) == ["second"])
    turns.wait("Resuming operations")
    user.patch("a", size=6)
    eventually("the update", lambda: calls.of(handler="update", name="a", operator="second"))
    user.settled("a")
    user.called("update a", handler="update", name="a")
    user.delete("a")
    eventually("a is gone", lambda: user.get("a") is None)
    user.called("delete a", handler="delete", name="a")
    user.steps.add("daemon ended", ["second", "daemon", "a", "ends"] in calls.of(handler="daemon", name="a"))
    user.delete("flaky")
    user.delete("broken")
    eventually("all are gone", lambda: user.get("flaky") is None and user.get("broken") is None)


def main(kubeconfig: str, namespace: str) -> dict[str, Any]:
    config.load_kube_config(kubeconfig)
    os.environ["KUBECONFIG"] = kubeconfig
    logging.getLogger("kopf").setLevel(logging.ERROR)
    calls = Calls()
    user = User(namespace, calls)
    user.define()
    with tempfile.TemporaryDirectory() as folder:
        crt, key = certificate(Path(folder))
        server = kopf.WebhookServer(
            addr="127.0.0.1", host="127.0.0.1", certfile=crt, pkeyfile=key, cadata=crt.read_bytes()
        )
        with operator("first", calls, namespace, priority=0, server=server):
            first_life(user, calls, namespace)
    user.steps.add("no peers", user.peers())
    admissions = client.AdmissionregistrationV1Api()
    for delete in (
        admissions.delete_validating_webhook_configuration,
        admissions.delete_mutating_webhook_configuration,
    ):
        delete("auto.kopf.example.com")
    with operator("second", calls, namespace, priority=0):
        second_life(user, calls, namespace)

    def told() -> list[Any]:
        found = user.core.list_namespaced_event(namespace).items
        return [[one.involved_object.name, one.type, one.reason, one.message] for one in found]

    user.steps.add("events", sorted(told()))
    return {"steps": user.steps.done}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2]), default=str))
