"""How containers live that do not say: by command, image, and the policy of their pod."""

from __future__ import annotations

import pytest

from kemu.emulated.kubelet.programs.residents import Programs
from kemu.messages.k8s import core_v1_pb2
from tests.kubelet.programs.test_shells import FAIL_ONCE, pod_of


def _course(
    image: str,
    command: tuple[str, ...] = (),
    args: tuple[str, ...] = (),
    policy: str = "Never",
    *,
    is_init: bool = False,
) -> tuple[float | None, int] | None:
    pod = pod_of(policy)
    container = pod.spec.containers.add(name="c", image=image, command=command, args=args)
    found = Programs().begin(pod, container, is_init=is_init, restarts=0, unix_s=0.0)
    return None if found is None else (found.run_s, found.exit_code)


@pytest.mark.parametrize(
    ("image", "command", "args", "policy", "course"),
    [
        ("busybox", ("sleep", "9"), (), "Always", (9, 0)),
        ("own/image:1", ("/bin/sh", "-c"), ("exit 2",), "Never", (0, 2)),
        ("busybox:1.37", (), ("false",), "Never", (0, 1)),
        ("busybox", (), (), "Never", (0, 0)),
        ("docker.io/library/nginx:1.27", (), (), "Never", (None, 0)),
        ("nginx", (), ("nginx", "-g", "daemon off;"), "Never", (None, 0)),
        ("nginx", (), ("echo", "hi"), "Never", (0, 0)),
        ("registry.k8s.io/pause:3.10", (), (), "Always", (None, 0)),
        ("registry.k8s.io/e2e-test-images/agnhost:2.55", (), (), "Always", (None, 0)),
        ("registry.k8s.io/e2e-test-images/agnhost:2.55", (), ("netexec", "--http-port=80"), "Always", (None, 0)),
        ("registry.k8s.io/e2e-test-images/agnhost:2.55", (), ("entrypoint-tester", "a"), "Never", (0, 0)),
        ("registry.k8s.io/e2e-test-images/agnhost:2.55", (),
         ("logs-generator", "--log-lines-total", "10", "--run-duration", "5s"), "Never", (5, 0)),
        ("perl:5.34", ("perl", "-wle", "print 1"), (), "Never", (3, 0)),
        ("perl:5.34", ("perl", "-wle", "print 1"), (), "OnFailure", (3, 0)),
        ("team/web", (), (), "Always", (None, 0)),
        ("team/web", (), (), "Never", (3, 0)),
    ],
)  # fmt: skip
def test_courses(
    image: str, command: tuple[str, ...], args: tuple[str, ...], policy: str, course: tuple[float | None, int]
) -> None:
    assert _course(image, command, args, policy) == course


def test_an_init_container_that_is_not_understood_lives_as_ever() -> None:
    assert _course("team/migrate", is_init=True) is None
    assert _course("busybox", ("sleep", "2"), is_init=True) == (2, 0)


def test_pods_of_one_node_share_its_folders() -> None:
    programs = Programs()
    codes = []
    for number in range(2):
        pod = core_v1_pb2.Pod()
        pod.metadata.uid = f"u{number}"
        pod.spec.volumes.add(name="data").volumeSource.hostPath.path = "/tmp/e2e"
        container = pod.spec.containers.add(name="c", image="busybox", command=["sh", "-c", FAIL_ONCE])
        container.volumeMounts.add(name="data", mountPath="/data")
        found = programs.begin(pod, container, is_init=False, restarts=0, unix_s=0.0)
        assert found is not None
        codes.append(found.exit_code)
        programs.forget(pod)
    assert codes == [1, 0]


def test_a_variable_whose_value_is_not_known_here_is_not_guessed() -> None:
    pod = pod_of()
    container = pod.spec.containers.add(name="c", image="busybox", command=["sh", "-c", "exit $CODE"])
    container.env.add(name="CODE").valueFrom.secretKeyRef.key = "code"
    found = Programs().begin(pod, container, is_init=False, restarts=0, unix_s=0.0)
    assert found is not None
    assert found.run_s == 3


def test_a_job_s_container_knows_its_index() -> None:
    pod = pod_of()
    pod.metadata.annotations["batch.kubernetes.io/job-completion-index"] = "5"
    container = pod.spec.containers.add(name="c", image="busybox", command=["sh", "-c", "exit $INDEX"])
    path = "metadata.annotations['batch.kubernetes.io/job-completion-index']"
    container.env.add(name="INDEX").valueFrom.fieldRef.fieldPath = path
    found = Programs().begin(pod, container, is_init=False, restarts=0, unix_s=0.0)
    assert found is not None
    assert found.exit_code == 5
