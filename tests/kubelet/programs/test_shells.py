"""Scripts in virtual time: what they print and when, how they end, what they leave behind."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable

import pytest

from kemu.emulated.kubelet.programs import courses
from kemu.emulated.kubelet.programs.courses import Volumes
from kemu.emulated.kubelet.programs.shells import Outcome, Process
from kemu.emulated.kubelet.programs.syntax import NotUnderstood
from kemu.messages.k8s import core_v1_pb2

FAIL_ONCE = """
  if [[ -r /data/foo ]]
  then
    exit 0
  else
    touch /data/foo
    exit 1
  fi
"""


def container_of(pod: core_v1_pb2.Pod, **more: object) -> core_v1_pb2.Container:
    found = pod.spec.containers.add(name="c", image="busybox")
    for key, value in more.items():
        getattr(found, key).extend(value)
    return found


def pod_of(policy: str = "Never") -> core_v1_pb2.Pod:
    pod = core_v1_pb2.Pod()
    pod.metadata.name, pod.metadata.namespace, pod.metadata.uid = "p", "default", "u"
    pod.spec.restartPolicy = policy
    pod.spec.volumes.add(name="data").volumeSource.emptyDir.SetInParent()
    return pod


def carried_out(
    script: str, volumes: Volumes | None = None, uid: str = "u", **env: str
) -> tuple[float | None, int, list[tuple[float, str]]]:
    """How long it runs, its exit code, what it prints."""
    printed: list[tuple[float, str]] = []
    outcome = process_of(
        script, volumes, uid, lambda at_s, _, text: printed.append((at_s, text)), **env
    ).outcome_of_all()
    return outcome.run_s, outcome.exit_code, printed


def process_of(
    script: str,
    volumes: Volumes | None = None,
    uid: str = "u",
    told: Callable[[float, int, str], None] = lambda at_s, descriptor, text: None,
    **env: str,
) -> Process:
    pod = pod_of()
    pod.metadata.uid = uid
    container = container_of(pod, command=["sh", "-c", script])
    container.volumeMounts.add(name="data", mountPath="/data")
    for name, value in env.items():
        container.env.add(name=name, value=value)
    found = courses.process(pod, container, volumes or Volumes(), 0, 1.7e9, told)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("script", "run_s", "code", "printed"),
    [
        ("exit 3", 0, 3, ""),
        ("true", 0, 0, ""),
        ("false", 0, 1, ""),
        ("sleep 5; exit 4", 5, 4, ""),
        ("sleep 1m && echo done", 60, 0, "done\n"),
        ("echo a; sleep 2; echo b && false || echo c", 2, 0, "a\nb\nc\n"),
        ("for i in 1 2 3; do echo $i; sleep 1; done", 3, 0, "1\n2\n3\n"),
        ("x=3; while [ $x -gt 0 ]; do echo -n $x; x=$((x - 1)); done", 0, 0, "321"),
        ("until test -f /tmp/x; do sleep 2; touch /tmp/x; done", 2, 0, ""),
        ("sleep 10 & sleep 4; wait; echo done", 10, 0, "done\n"),
        ("set -e; false; echo no", 0, 1, ""),
        ("set -e; false || true; if false; then :; fi; echo yes", 0, 0, "yes\n"),
        ("if [ $(expr ${INDEX} % 2) -ne 0 ]; then exit 1; else exit 0; fi", 0, 1, ""),
        ("echo \"a  $INDEX\" 'b  $INDEX' c\\ d $INDEX$INDEX", 0, 0, "a  7 b  $INDEX c d 77\n"),
        ("echo ${X:-one} ${INDEX:+two} ${#HOME} ${P%.*} ${P##*/}", 0, 0, "one two 5 /a/b b.txt\n"),
        ("echo $((1 + 2 * 3)) $(( (4 > 3) && 2 )) $((INDEX / 2)) $((-7 / 2))", 0, 0, "7 1 3 -3\n"),
        ("echo hi > /data/x; cat /data/x; cat < /data/x; cat /nope 2>/dev/null", 0, 1, "hi\nhi\n"),
        ("printf '%s-%03d\\n' a 7 b 8", 0, 0, "a-007\nb-008\n"),
        ("echo `echo q` $(echo r; exit 3) $?", 0, 0, "q r 3\n"),
        ("(exit 3); echo $?; ! true; echo $?", 0, 0, "3\n1\n"),
        ("echo one two | wc -w; seq 1 9 | tail -n 2; echo b64 | base64 | base64 -d", 0, 0, "2\n8\n9\nb64\n"),
        ("mkdir -p /data/a/b && touch /data/a/b/c && ls /data/a/b && mv -v /data/a/b/c /tmp/", 0, 0,
         "c\n'/data/a/b/c' -> '/tmp/c'\n"),
        ("date -u +%Y-%m-%dT%H:%M:%SZ; sleep 60; date +%s", 60, 0, "2023-11-14T22:13:20Z\n1700000060\n"),
        ("trap 'exit 0' TERM; sleep 3", 3, 0, ""),
        ("timeout 5 sleep 100; echo $?", 5, 0, "124\n"),
        ("exec sleep 7", 7, 0, ""),
        ("sleep infinity", None, 0, ""),
        ("tail -f /dev/null", None, 0, ""),
        ("exec nginx -g 'daemon off;'", None, 0, ""),
        ("while true; do sleep 10; done", None, 0, ""),
        ("while :; do :; done", None, 0, ""),
        ("set -- a 'b c'; for x in \"$@\"; do echo \"<$x>\"; done; echo $#", 0, 0, "<a>\n<b c>\n2\n"),
    ],
)  # fmt: skip
def test_scripts(script: str, run_s: float | None, code: int, printed: str) -> None:
    found_s, found_code, pieces = carried_out(script, INDEX="7", P="/a/b.txt")
    text = "".join(text for _, text in pieces).replace("renamed ", "")
    assert (found_s, found_code, text) == (run_s, code, printed)


@pytest.mark.parametrize(
    "script",
    [
        "python train.py",
        "./run.sh",
        "if true; then",
        "echo 'open",
        "function f { echo; }",
        "f() { f; }; f",
        "return 1",
        "case $x in a) ;; esac",
        "cat <<EOF\nx\nEOF",
        "curl http://web",
        "echo $((1 / 0))",
        "trap 'echo bye' EXIT",
        "kill 1",
    ],
)
def test_what_is_not_understood_is_said(script: str) -> None:
    with pytest.raises(NotUnderstood):
        carried_out(script)


WAITS = "sleep 9 & wait $!; echo waited $?; exit 5"
STOPPED = [
    # script, when it is told to stop, when it ends, its code
    ("trap 'exit 3' TERM; sleep 2", 1, 2, 3),
    ("trap 'exit 3' TERM; while true; do sleep 1; done", 2.5, 3, 3),
    ("trap 'exit 3' SIGTERM INT; sleep 9 & wait", 1, 1, 3),
    ("trap exit 15; " + WAITS, 1, 1, 143),
    ("trap 'echo on' TERM; " + WAITS, 1, 1, 5),
    ("trap '' TERM; sleep 2; exit 4", 1, 2, 4),
    ("f() { sleep 1; exit 7; }; trap f TERM; sleep 9 & wait", 1, 2, 7),
    ("trap 'kill $p; wait $p; exit 6' TERM; sleep 9 & p=$!; wait $p", 1, 1, 6),
    ("trap 'kill -s TERM $p' TERM; sleep 9 & p=$!; wait $p; wait $p; exit 8", 1, 1, 8),
    ("(trap 'exit 3' TERM; sleep 1); trap 'exit 4' TERM; sleep 1; exit 9", 1.5, 2, 4),
    ("trap 'exit 3' TERM; exec sh -c 'trap \"exit 4\" TERM; sleep 9 & wait'", 1, 1, 4),
    ("trap 'exit 3' TERM; (sleep 2); exit 1", 1, 2, 3),
]


@pytest.mark.parametrize(("script", "told_s", "ends_s", "code"), STOPPED)
def test_a_trap_runs_when_the_command_before_it_has_ended(script: str, told_s: float, ends_s: float, code: int) -> None:
    found = process_of(script)
    assert found.stop(told_s) == Outcome(ends_s, code)
    began = time.monotonic()
    with subprocess.Popen(["bash", "-c", script], stdout=subprocess.DEVNULL, start_new_session=True) as real:
        time.sleep(told_s)
        real.send_signal(signal.SIGTERM)
        real_code = real.wait(20)
        took_s = time.monotonic() - began
        with contextlib.suppress(ProcessLookupError):
            os.killpg(real.pid, signal.SIGKILL)
    assert real_code == code
    assert took_s >= ends_s - 0.1


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("sleep 9", None),
        ("trap 'exit 3' TERM; trap - TERM; sleep 9", None),
        ("trap 'exit 3' INT; sleep 9", None),
        ("sleep 2; trap 'exit 3' TERM; sleep 9", None),
        ("trap 'exit 3' TERM; sleep infinity", Outcome(None)),
        ("trap 'exit 3' TERM; sleep infinity & wait", Outcome(1, 3)),
        ("trap 'exit 3' TERM; exec nginx -g 'daemon off;'", None),
        ("trap 'exit 3' TERM; nginx -g 'daemon off;'", Outcome(None)),
        ("trap 'exit 3' TERM; while :; do :; done", Outcome(1, 3)),
        ("trap ':' TERM; while :; do :; done", Outcome(None)),
    ],
)
def test_what_else_happens_to_one_that_is_told_to_stop(script: str, found: Outcome | None) -> None:
    assert process_of(script).stop(1) == found


def test_lines_have_the_times_at_which_they_are_printed() -> None:
    assert carried_out("echo a; sleep 2.5; echo b")[2] == [(0.0, "a\n"), (2.5, "b\n")]


def test_a_volume_of_the_pod_keeps_what_a_start_has_left() -> None:
    volumes = Volumes()
    assert [carried_out(FAIL_ONCE, volumes)[1] for _ in range(3)] == [1, 0, 0]
    assert carried_out(FAIL_ONCE)[1] == 1


def test_chance_follows_from_the_pod() -> None:
    script = "exit $(( $RANDOM / 16384 ))"
    codes = [carried_out(script, uid=f"uid-{number}")[1] for number in range(40)]
    assert codes == [carried_out(script, uid=f"uid-{number}")[1] for number in range(40)]
    assert 8 < sum(codes) < 32


_PIECES = (
    "echo", "exit", "sleep", "1", "$X", "${X", "${X:-", "}", "$(", ")", "`", "'", '"', ";", "&&", "||", "|", "&",
    "\n", " ", "if", "then", "fi", "else", "while", "do", "done", "for", "in", "{", "(", "[", "]", "[[", "]]", "-f",
    "=", ">", ">>", "<", "2>&1", "/tmp/x", "$((", "))", "+", "*", "\\", "#", "!", "true", "false", "cat", "seq",
    "99999", "test", "set", "-e", "printf", "%s", "grep", "head", "wait", "timeout", "exec", "break", "continue",
    "\0", "é", "~", "$", "$@",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_no_script_does_more_than_to_end_or_not_to_be_understood(seed: int) -> None:
    choose = random.Random(seed)
    for _ in range(100):
        script = "".join(choose.choice(_PIECES) + choose.choice(("", " ")) for _ in range(choose.randrange(1, 25)))
        try:
            run_s, code, _ = carried_out(script)
        except NotUnderstood:
            continue
        assert run_s is None or run_s >= 0
        assert 0 <= code <= 255


@pytest.mark.parametrize(
    ("script", "run_s", "code", "printed"),
    [
        ('f() { echo "$# $1"; sleep 2; }\nf a b; echo $#', 2, 0, [(0, "2 a\n"), (2, "0\n")]),
        ("f () \n{\n  return 3\n  echo never\n}\nf || echo $?; f", 0, 3, [(0, "3\n")]),
        ("x=1; f() { local x=2 y; y=5; echo $x; }; f; echo $x${y-none}", 0, 0, [(0, "2\n"), (0, "1none\n")]),
        ("set -e; f() { false; echo on; }; f || echo not; f; echo never", 0, 1, [(0, "on\n")]),
        ("f() (exit 4); f; echo $?", 0, 0, [(0, "4\n")]),
        ("_term(){\n  sleep 5\n  exit 143\n}\ntrap _term SIGTERM\nwhile true; do\n  sleep 1\ndone", None, 0, []),
    ],
)
def test_functions(script: str, run_s: float | None, code: int, printed: list[tuple[float, str]]) -> None:
    assert carried_out(script) == (run_s, code, printed)
