"""Webhooks of clusters in virtual time: it stands while they are asked, and a replay does without them."""

from __future__ import annotations

import copy
import time
from pathlib import Path
from typing import Any

import kubernetes
import pytest

from kemu.lab.scenario.playing.replaying import replays
from kemu.lab.up import embedded
from kemu.lab.up.virtual import drivers
from kemu.lab.up.virtual.replays import setting
from tests.admission import cases, webhook_server
from tests.admission.webhook_server import Server
from tests.gateway.custom import conversions, converters

NAMESPACE = "default"


def _hook(server: Server, path: str, **more: Any) -> dict[str, Any]:
    return {**cases.hook(path, **more), "clientConfig": server.client(path)}


def test_time_stands_while_a_webhook_is_asked_and_a_replay_needs_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long it takes to answer: its timeout would be over, but it has at least ``WEBHOOK_S`` of real time."""
    monkeypatch.setattr(drivers, "WEBHOOK_S", 2.0)
    delays = [1.2]
    with webhook_server.serving() as server, embedded.up(nodes=1, folder=tmp_path / "run") as cluster:
        found = kubernetes.config.new_client_from_config(str(cluster.kubeconfig))
        core = kubernetes.client.CoreV1Api(found)
        registered = kubernetes.client.AdmissionregistrationV1Api(found)

        def asks_back(asked: dict[str, Any]) -> dict[str, Any]:
            """A webhook that asks the cluster itself before it answers."""
            names = [one.metadata.name for one in core.list_namespaced_config_map(NAMESPACE).items]
            time.sleep(delays.pop() if delays else 0)
            return webhook_server.labelled("seen", str(len(names)))(asked)

        server.more["asks-back"] = asks_back
        for name, webhook in (
            ("a", _hook(server, "asks-back", timeoutSeconds=1)),
            ("b", _hook(server, "hang", timeoutSeconds=1, failurePolicy="Ignore")),
            ("c", _hook(server, "label-a")),
        ):
            body = {**cases.hooks("Mutating", webhook), "metadata": {"name": name}}
            registered.create_mutating_webhook_configuration(body)
        cluster.step(seconds=1)
        before_s, begun = cluster.now_s, time.monotonic()
        made = core.create_namespaced_config_map(NAMESPACE, cases.config_map())
        assert time.monotonic() - begun > 3.2
        assert cluster.now_s - before_s < 0.2
        assert made.metadata.labels == {"seen": "1", "a": "1"}
        # Steps wait for the answer, too.
        core.patch_namespaced_config_map("one", NAMESPACE, {"data": {"more": "x"}})
        cluster.step(seconds=5)
        body = {**cases.hooks("Validating", _hook(server, "deny-message")), "metadata": {"name": "d"}}
        registered.create_validating_webhook_configuration(body)
        cluster.step(seconds=1)
        with pytest.raises(kubernetes.client.ApiException, match="no such luck"):
            core.create_namespaced_config_map(NAMESPACE, cases.config_map("two"))
    (again,) = replays.replay(tmp_path / "run", setting=setting)
    assert again.difference is None


def test_objects_are_converted_while_time_stands_and_a_replay_needs_no_converter(tmp_path: Path) -> None:
    with webhook_server.serving() as server, embedded.up(nodes=1, folder=tmp_path / "run") as cluster:
        server.reviews.update(converters.RESPONSES)
        api = kubernetes.client.CustomObjectsApi(kubernetes.config.new_client_from_config(str(cluster.kubeconfig)))
        definition = copy.deepcopy(conversions.DEFINITION)
        definition["spec"]["conversion"]["webhook"]["clientConfig"] = server.client("convert")
        api.create_cluster_custom_object("apiextensions.k8s.io", "v1", "customresourcedefinitions", definition)
        cluster.step(seconds=3)
        where = conversions.GROUP, "v2", NAMESPACE, "gizmos"
        api.create_namespaced_custom_object(*where, conversions.two("a", host="a", port=80))
        found = api.list_namespaced_custom_object(conversions.GROUP, "v1", NAMESPACE, "gizmos")
        assert [one["spec"]["address"] for one in found["items"]] == ["a:80"]
        api.patch_namespaced_custom_object(*where, "a", {"spec": {"port": 81}})
        cluster.step(seconds=2)
        assert api.get_namespaced_custom_object(*where, "a")["spec"]["port"] == 81
        assert server.asked
    (again,) = replays.replay(tmp_path / "run", setting=setting)
    assert again.difference is None
