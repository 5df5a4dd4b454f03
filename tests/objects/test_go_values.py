"""Messages as Go writes them say what the same objects in JSON say."""

from __future__ import annotations

from kemu.emulated.objects.conversion import go_values
from kemu.messages.k8s import apps_v1_pb2, core_v1_pb2


def test_fields_without_a_value_are_absent() -> None:
    pod = core_v1_pb2.Pod()
    pod.metadata.name = "a"
    pod.metadata.generateName = ""
    pod.metadata.generation = 0
    pod.metadata.creationTimestamp.SetInParent()
    pod.spec.nodeName = ""
    pod.spec.hostNetwork = False
    pod.spec.containers.add(name="c", workingDir="").resources.SetInParent()
    pod.spec.containers[0].resources.requests["cpu"].string = "0"
    pod.status.SetInParent()
    plain = core_v1_pb2.Pod()
    plain.metadata.name = "a"
    plain.spec.containers.add(name="c").resources.requests["cpu"].string = "0"
    go_values.trim(pod)
    assert pod == plain


def test_what_a_pointer_points_to_counts() -> None:
    deployment = apps_v1_pb2.Deployment()
    deployment.spec.replicas = 0
    deployment.spec.minReadySeconds = 0  # no pointer
    deployment.spec.selector.SetInParent()
    template = deployment.spec.template.spec
    template.terminationGracePeriodSeconds = 0
    template.volumes.add(name="v").volumeSource.emptyDir.medium = ""
    go_values.trim(deployment)
    assert deployment.spec.HasField("replicas")
    assert not deployment.spec.HasField("minReadySeconds")
    assert deployment.spec.HasField("selector")
    assert template.HasField("terminationGracePeriodSeconds")
    assert template.volumes[0].volumeSource.HasField("emptyDir")
    assert not template.volumes[0].volumeSource.emptyDir.HasField("medium")


def test_a_time_without_seconds_is_none_but_that_of_the_epoch_is_one() -> None:
    event = core_v1_pb2.Event()
    event.eventTime.SetInParent()
    event.firstTimestamp.seconds = 0
    go_values.trim(event)
    assert not event.HasField("eventTime")
    assert event.HasField("firstTimestamp")
