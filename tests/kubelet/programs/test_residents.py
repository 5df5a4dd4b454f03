"""Programs that go on side by side, and what hooks and probes find in their containers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from kemu.emulated.kubelet.programs import environments
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.runlog.frames import FILE_NAME, Reader


class Seen(NamedTuple):
    statuses: list[tuple[float, core_v1_pb2.PodStatus]]
    events: list[tuple[float, str, str]]
    """When, reason, message."""

    def of(self, reason: str) -> list[tuple[float, str]]:
        return [(time_s, message) for time_s, one, message in self.events if one == reason]

    def container(self, name: str = "c") -> core_v1_pb2.ContainerStatus:
        """As it was last."""
        found = (*self.statuses[-1][1].containerStatuses, *self.statuses[-1][1].initContainerStatuses)
        return next(one for one in found if one.name == name)

    def first(self, phase: str) -> float | None:
        return next((time_s for time_s, status in self.statuses if status.phase == phase), None)

    def ready(self) -> list[tuple[float, bool]]:
        """When the first container became ready or unready."""
        found: list[tuple[float, bool]] = []
        for time_s, status in self.statuses:
            if status.containerStatuses and (not found or found[-1][1] != status.containerStatuses[0].ready):
                found.append((time_s, status.containerStatuses[0].ready))
        return found


def play(folder: Path, spec: dict[str, Any], *others: dict[str, Any], duration: str = "2m", events: Any = ()) -> Seen:
    """A pod ``p`` with that spec, of which a container without an image is busybox's."""
    for one in (*spec.get("initContainers", ()), *spec["containers"]):
        one.setdefault("name", "c")
        one.setdefault("image", "busybox")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"app": "a"}}, "spec": spec}
    scenario = {
        "duration": duration,
        "programs": True,
        "eventObjects": "all",
        "references": {"contents": "strict"},
        "nodes": [{"namePrefix": "node-", "count": 1}],
        "manifests": [*others, pod],
        "events": list(events),
    }
    text = yaml.safe_dump({"apiVersion": "kemu.dev/v1", "kind": "Scenario", "spec": scenario})
    runner.run(loader.loads(text), runner.Options(out=folder))
    seen = Seen([], [])
    with Reader(folder / FILE_NAME) as reader:
        for event in reader:
            if event.kind != "store.txn":
                continue
            for _, key, value, _, _ in event.data["changes"]:
                if key == "/registry/pods/default/p" and value:
                    seen.statuses.append((event.time_ns / 1e9, core_v1_pb2.Pod.FromString(value).status))
                elif key.startswith("/registry/events/") and value:
                    one = core_v1_pb2.Event.FromString(value)
                    seen.events.append((event.time_ns / 1e9, one.reason, one.message))
    return seen


def shell(script: str, **more: Any) -> dict[str, Any]:
    return {"command": ["sh", "-c", script], **more}


def probe(*command: str, **more: Any) -> dict[str, Any]:
    return {"exec": {"command": list(command)}, "periodSeconds": 5, **more}


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def secret(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data}


# Probes --------------------------------------------------------------------------------------------------------------


def test_a_liveness_probe_fails_when_the_program_has_removed_its_file(tmp_path: Path) -> None:
    """The example of Kubernetes' documentation."""
    script = "touch /tmp/healthy; sleep 30; rm -f /tmp/healthy; sleep 600"
    liveness = probe("cat", "/tmp/healthy", initialDelaySeconds=5)
    seen = play(tmp_path, {"containers": [shell(script, livenessProbe=liveness)]})
    told = seen.of("Unhealthy")
    assert {message for _, message in told} == {
        "Liveness probe failed: cat: can't open '/tmp/healthy': No such file or directory\n"
    }
    assert 30 < told[0][0] < 36
    killed_s, message = seen.of("Killing")[0]
    assert message == "Container c failed liveness probe, will be restarted"
    assert 40 < killed_s < 46
    assert seen.container().restartCount == 2


def test_a_readiness_probe_waits_for_a_file(tmp_path: Path) -> None:
    readiness = probe("test", "-f", "/tmp/ready", periodSeconds=1)
    script = "sleep 10; touch /tmp/ready; sleep 20; rm /tmp/ready; sleep 600"
    changes = play(tmp_path, {"containers": [shell(script, readinessProbe=readiness)]}).ready()
    assert [ready for _, ready in changes] == [False, True, False]
    assert 10 < changes[1][0] < 13
    assert 32 < changes[2][0] < 36


def test_a_probe_that_takes_too_long_fails(tmp_path: Path) -> None:
    seen = play(tmp_path, {"containers": [shell("sleep 600", readinessProbe=probe("sleep", "3"))]}, duration="30s")
    assert {message for _, message in seen.of("Unhealthy")} == {
        'Readiness probe failed: command timed out: "sleep 3" timed out after 1s'
    }
    assert [ready for _, ready in seen.ready()] == [False]


def test_a_probe_that_always_fails_and_one_that_is_not_understood(tmp_path: Path) -> None:
    containers = [
        shell("sleep 600", name="fails", readinessProbe=probe("sh", "-c", "echo no; exit 3")),
        {"name": "unknown", "image": "team/db", "readinessProbe": probe("pg_isready")},
        {"name": "file", "image": "team/db", "readinessProbe": probe("cat", "/var/lib/app/ready")},
    ]
    seen = play(tmp_path, {"containers": containers}, duration="30s")
    assert [seen.container(name).ready for name in ("fails", "unknown", "file")] == [False, True, True]
    assert {message for _, message in seen.of("Unhealthy")} == {"Readiness probe failed: no\n"}


def test_what_the_pod_states_of_its_probes_goes_first(tmp_path: Path) -> None:
    spec = {"containers": [shell("sleep 600", readinessProbe=probe("false"))]}
    annotations = {"kemu.dev/probes": "c: {readiness: {}}"}
    patch = {"kind": "Pod", "name": "p", "merge": {"metadata": {"annotations": annotations}}}
    states = {"at": "20s", "patch": patch}
    seen = play(tmp_path, spec, duration="40s", events=[states])
    assert [ready for _, ready in seen.ready()] == [False, True]


# Hooks ---------------------------------------------------------------------------------------------------------------


def hook(which: str, *command: str) -> dict[str, Any]:
    return {"lifecycle": {which: {"exec": {"command": list(command)}}}}


def test_a_program_waits_for_what_its_post_start_hook_makes(tmp_path: Path) -> None:
    script = "until [ -f /tmp/go ]; do sleep 1; done; sleep 2; exit 4"
    spec = {
        "restartPolicy": "Never",
        "containers": [shell(script, **hook("postStart", "sh", "-c", "sleep 3; touch /tmp/go"))],
    }
    seen = play(tmp_path, spec)
    ended = seen.container().state.terminated
    assert ended.exitCode == 4
    assert 5 <= ended.finishedAt.seconds - ended.startedAt.seconds <= 6


def test_a_post_start_hook_that_fails_kills_its_container(tmp_path: Path) -> None:
    spec = {"terminationGracePeriodSeconds": 3, "containers": [shell("sleep 600", **hook("postStart", "false"))]}
    seen = play(tmp_path, spec)
    assert seen.of("FailedPostStartHook")[0][1] == "PostStartHook failed"
    assert seen.of("Killing")[0][1] == "FailedPostStartHook"
    assert seen.container().restartCount >= 2
    assert not any(status.containerStatuses[0].ready for _, status in seen.statuses if status.containerStatuses)


def deleted_at(time: str) -> dict[str, Any]:
    return {"at": time, "delete": {"pod": "p"}}


def test_a_pre_stop_hook_takes_its_time_and_its_failure_is_told(tmp_path: Path) -> None:
    spec = {"containers": [shell("sleep 600", **hook("preStop", "sh", "-c", "sleep 7; false"))]}
    seen = play(tmp_path, spec, events=[deleted_at("30s")])
    (failed_s, message), *_ = seen.of("FailedPreStopHook")
    assert message == "PreStopHook failed"
    assert 37 <= failed_s < 38
    assert 37 <= seen.statuses[-1][0] < 39


def test_a_pre_stop_hook_has_the_grace_period_at_most(tmp_path: Path) -> None:
    spec = {"terminationGracePeriodSeconds": 5, "containers": [shell("sleep 600", **hook("preStop", "sleep", "60"))]}
    seen = play(tmp_path, spec, events=[deleted_at("30s")])
    assert seen.of("FailedPreStopHook") == []
    assert 35 <= seen.statuses[-1][0] < 38


@pytest.mark.parametrize(
    ("script", "more", "code", "gone_s"),
    [
        ("trap 'exit 3' TERM; while true; do sleep 2; done", {}, 3, (20, 22)),
        ("trap 'exit 3' TERM; sleep 9000 & wait", {}, 3, (20, 20)),
        ("trap 'exit 3' TERM; sleep 9000", {}, 137, (25, 25)),
        ("trap '' TERM; while true; do sleep 2; done", {}, 137, (25, 25)),
        ("sleep 9000", {}, 0, (20, 20)),
        ("trap 'exit 3' TERM; sleep 1; trap - TERM; sleep 9000", {}, 0, (20, 20)),
        # What others see of its files is done step by step.
        ("trap 'exit 3' TERM; while true; do sleep 2; done", {"readinessProbe": probe("true")}, 3, (20, 22)),
        (
            "trap 'exit 3' TERM; sleep 9000 & wait",
            {"lifecycle": {"preStop": {"exec": {"command": ["sleep", "2"]}}}}, 3, (22, 22),
        ),
    ],
)  # fmt: skip
def test_a_script_with_a_trap_stops_as_it_says(
    tmp_path: Path, script: str, more: dict[str, Any], code: int, gone_s: tuple[float, float]
) -> None:
    spec = {"terminationGracePeriodSeconds": 5, "containers": [shell(script, **more)]}
    seen = play(tmp_path, spec, events=[{"at": "20s", "delete": {"pod": "p"}}], duration="40s")
    assert seen.container().state.terminated.exitCode == code
    assert gone_s[0] <= seen.statuses[-1][0] <= gone_s[1] + 1


def test_a_container_that_ignores_signals_is_killed_before_it_restarts(tmp_path: Path) -> None:
    liveness = probe("false", failureThreshold=1, initialDelaySeconds=10)
    spec = {
        "terminationGracePeriodSeconds": 5,
        "containers": [shell("trap '' TERM; sleep 90 & wait", livenessProbe=liveness)],
    }
    seen = play(tmp_path, spec, duration="25s")
    assert seen.container().lastState.terminated.exitCode == 137


def test_a_pre_stop_hook_makes_the_pod_unready(tmp_path: Path) -> None:
    readiness = probe("sh", "-c", "! test -f /tmp/draining", periodSeconds=1)
    stops = hook("preStop", "sh", "-c", "touch /tmp/draining; sleep 20")
    changes = play(
        tmp_path, {"containers": [shell("sleep 600", readinessProbe=readiness, **stops)]}, events=[deleted_at("30s")]
    ).ready()
    assert [ready for _, ready in changes][:3] == [False, True, False]
    assert 32 <= changes[2][0] < 36


# Containers together -------------------------------------------------------------------------------------------------


def test_a_container_waits_for_what_another_one_writes_into_a_volume(tmp_path: Path) -> None:
    mounts = [{"name": "shared", "mountPath": "/shared"}]
    spec = {
        "restartPolicy": "Never",
        "volumes": [{"name": "shared", "emptyDir": {}}],
        "containers": [
            shell(
                "until [ -f /shared/done ]; do sleep 1; done; exit $(cat /shared/done)",
                name="waits",
                volumeMounts=mounts,
            ),
            shell("sleep 12; echo 9 > /shared/done", name="works", volumeMounts=mounts),
        ],
    }
    seen = play(tmp_path, spec)
    ended = seen.container("waits").state.terminated
    assert ended.exitCode == 9
    assert 12 <= ended.finishedAt.seconds - ended.startedAt.seconds <= 14


# Variables and files --------------------------------------------------------------------------------------------------


def exit_code(folder: Path, container: dict[str, Any], *others: dict[str, Any], **spec: Any) -> int:
    seen = play(folder, {"restartPolicy": "Never", "containers": [container], **spec}, *others, duration="30s")
    assert seen.first("Succeeded") or seen.first("Failed"), seen.statuses[-1]
    return int(seen.container().state.terminated.exitCode)


def test_variables_of_config_maps_and_secrets(tmp_path: Path) -> None:
    env = [
        {"name": "A", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "a"}}},
        {"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "s"}}},
        {"name": "NO", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "no", "optional": True}}},
        {"name": "SUM", "value": "$(A)$(P_B)$$(A)$(NOSUCH)"},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "LABEL", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
        {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
    ]
    checks = (
        '[ "$A$S$P_B" = 123 ] && [ -z "${NO+x}" ] && [ "$SUM" = \'12$(A)$(NOSUCH)\' ] && '
        '[ "$NODE-$LABEL" = node-1-a ] && [ "$CPU" -gt 0 ] && exit $(A)'
    )
    container = shell(checks.replace("$(A)$(NOSUCH)", "$$(A)$$(NOSUCH)"), env=env)
    container["envFrom"] = [{"prefix": "P_", "configMapRef": {"name": "more"}}]
    assert exit_code(tmp_path, container, config_map("cm", a="1"), secret("s", s="2"), config_map("more", B="3")) == 1


def test_a_script_that_reads_a_config_map_that_it_mounts(tmp_path: Path) -> None:
    volumes = [
        {"name": "cm", "configMap": {"name": "cm"}},
        {"name": "all", "projected": {"sources": [
            {"secret": {"name": "s"}},
            {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
            {"serviceAccountToken": {"path": "token"}},
        ]}},
    ]  # fmt: skip
    mounts = [
        {"name": "cm", "mountPath": "/etc/cm"},
        {"name": "cm", "mountPath": "/app/run.sh", "subPath": "run.sh"},
        {"name": "all", "mountPath": "/all"},
    ]
    script = '[ "$(cat /etc/cm/a)-$(cat /all/s)" = 1-2 ] && grep -q app /all/labels && sh /app/run.sh'
    container = shell(script, volumeMounts=mounts)
    others = config_map("cm", a="1", **{"run.sh": "exit 5"}), secret("s", s="2")
    assert exit_code(tmp_path, container, *others, volumes=volumes) == 5


def test_variables_tell_of_the_services_that_there_are(tmp_path: Path) -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "my-db"}}
    service["spec"] = {"clusterIP": "10.96.3.4", "ports": [{"name": "sql", "port": 5432}]}  # type: ignore[assignment]
    script = (
        '[ "$MY_DB_SERVICE_HOST:$MY_DB_SERVICE_PORT_SQL" = 10.96.3.4:5432 ] && '
        '[ "$MY_DB_PORT" = tcp://10.96.3.4:5432 ] && [ "$URL" = http://10.96.3.4 ] && exit 6'
    )
    env = [{"name": "URL", "value": "http://$(MY_DB_SERVICE_HOST)"}]
    assert exit_code(tmp_path / "with", shell(script, env=env), service) == 6
    bare = shell('[ -z "$MY_DB_SERVICE_HOST" ] && [ -n "$KUBERNETES_SERVICE_HOST" ] && exit 7')
    assert exit_code(tmp_path / "without", bare, service, enableServiceLinks=False) == 7


def test_the_variables_of_a_service() -> None:
    pod = core_v1_pb2.Pod()
    pod.metadata.namespace = "shop"
    services = []
    for namespace, name, address in (("shop", "web", "fd00::1"), ("other", "x", "10.0.0.2"), ("shop", "none", "None")):
        one = core_v1_pb2.Service()
        one.metadata.namespace, one.metadata.name, one.spec.clusterIP = namespace, name, address
        one.spec.ports.add(port=80)
        one.spec.ports.add(name="dns-udp", port=53, protocol="UDP")
        services.append(one)
    found = environments.of_services(pod, services)
    assert {name: value for name, value in found.items() if not name.startswith("KUBERNETES")} == {
        "WEB_SERVICE_HOST": "fd00::1",
        "WEB_SERVICE_PORT": "80",
        "WEB_SERVICE_PORT_DNS_UDP": "53",
        "WEB_PORT": "tcp://[fd00::1]:80",
        "WEB_PORT_80_TCP": "tcp://[fd00::1]:80",
        "WEB_PORT_80_TCP_PROTO": "tcp",
        "WEB_PORT_80_TCP_PORT": "80",
        "WEB_PORT_80_TCP_ADDR": "fd00::1",
        "WEB_PORT_53_UDP": "udp://[fd00::1]:53",
        "WEB_PORT_53_UDP_PROTO": "udp",
        "WEB_PORT_53_UDP_PORT": "53",
        "WEB_PORT_53_UDP_ADDR": "fd00::1",
    }
    assert found["KUBERNETES_SERVICE_PORT_HTTPS"] == "443"


def test_agnhost_shows_the_files_of_a_volume(tmp_path: Path) -> None:
    volumes = [{"name": "cm", "configMap": {"name": "cm", "items": [{"key": "a", "path": "path/to/a"}]}}]
    container = {
        "image": "registry.k8s.io/e2e-test-images/agnhost:2.55",
        "args": ["mounttest", "--file_content=/etc/cm/path/to/a"],
        "volumeMounts": [{"name": "cm", "mountPath": "/etc/cm"}],
    }
    assert exit_code(tmp_path / "there", container, config_map("cm", a="1"), volumes=volumes) == 0
    assert (
        exit_code(
            tmp_path / "empty", dict(container), config_map("cm", a="1"), volumes=[{"name": "cm", "emptyDir": {}}]
        )
        == 1
    )
