"""Patterns for containers and their owners."""

from __future__ import annotations

import random
import re
import time

import pytest

from kemu.emulated.objects.pods.container_patterns import Patterns
from kemu.messages.k8s import core_v1_pb2


@pytest.mark.parametrize(
    ("pattern", "image", "matches"),
    [
        ("nginx", "nginx", True),
        ("nginx", "nginx:1.27", True),
        ("nginx", "docker.io/library/nginx:1.27@sha256:0123", True),
        ("nginx", "nginx-ingress", False),
        ("nginx*", "registry:5000/nginx-ingress:2", True),
        ("nginx:1.*", "x/nginx:1.27", True),
        ("nginx:1.*", "x/nginx:2.0", False),
        ("library/nginx", "docker.io/library/nginx", False),
        ("*/library/nginx", "docker.io/library/nginx:1", True),
        ("registry:5000/*", "registry:5000/team/web:3", True),
        ("web-[ab]", "web-b", True),
        ("web-?", "web-10", False),
    ],
)
def test_images(pattern: str, image: str, matches: bool) -> None:
    assert Patterns(image=pattern).match_container(core_v1_pb2.Container(image=image)) is matches


def test_words_are_joined_and_matched_as_a_whole() -> None:
    container = core_v1_pb2.Container(command=["sh", "-c"], args=["run\n--fast"])
    assert Patterns(command="sh -c").match_container(container)
    assert Patterns(command="sh*", args="run*--fast").match_container(container)
    assert not Patterns(command="sh").match_container(container)
    assert not Patterns(args="*").match_container(core_v1_pb2.Container())


def test_an_owner_is_the_controller() -> None:
    pod = core_v1_pb2.Pod()
    pod.metadata.ownerReferences.add(kind="Job", name="backup-1", controller=True)
    pod.metadata.ownerReferences.add(kind="Backup", name="b")
    assert Patterns(owner="Job/backup-*").match_pod(pod)
    assert not Patterns(owner="Backup/*").match_pod(pod)
    assert not Patterns(owner="Job/*").match_pod(core_v1_pb2.Pod())


def _plainly(pattern: str, text: str) -> bool:
    """Stars and question marks, by trying everything."""
    reached = {0}
    for sign in pattern:
        if sign == "*":
            reached = set(range(min(reached), len(text) + 1)) if reached else reached
        else:
            reached = {at + 1 for at in reached if at < len(text) and sign in ("?", text[at])}
    return len(text) in reached


def test_patterns_match_what_they_say() -> None:
    choose = random.Random(1)
    for _ in range(3000):
        pattern = "".join(choose.choice("ab*?. ") for _ in range(choose.randrange(1, 8)))
        words = ["".join(choose.choice("ab. \n") for _ in range(choose.randrange(8)))]
        found = Patterns(args=pattern).match_container(core_v1_pb2.Container(args=words))
        assert found is _plainly(pattern, words[0]), (pattern, words)


def test_no_pattern_takes_long() -> None:
    begun = time.process_time()
    pattern = re.sub("x", "a*", "x" * 60) + "b"
    assert not Patterns(args=pattern).match_container(core_v1_pb2.Container(args=["a" * 20_000]))
    assert time.process_time() - begun < 5
