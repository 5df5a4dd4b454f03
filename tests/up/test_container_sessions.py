"""Sessions with containers of ``kemu up``: exec, attach, logs and ports, out of the box and by handlers."""

from __future__ import annotations

import contextlib
import io
import json
import ssl
import tarfile
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import websocket
import yaml

from kemu.errors import KemuError
from kemu.lab.up import clusters, container_handlers
from kemu.messages.k8s import core_v1_pb2
from tests.up.processes import Process, up

HANDLERS = """
async def psql(session):
    await session.write(f"{session.pod['metadata']['name']}/{session.container}: {' '.join(session.command)}\\n")
    await session.write_error("warned\\n")
    while data := await session.read():
        await session.write(data.upper())
        if data.endswith(b"q\\n"):
            return 7

async def broken(session):
    raise RuntimeError("out of order")

async def echo(session):
    while data := await session.read():
        await session.write(b"<" + data + b">")
"""
LIVES = """
- {image: postgres, exec: my_handlers:psql, attach: my_handlers:broken, portForward: my_handlers:echo}
"""
PODS = "/api/v1/namespaces/default/pods"
SERVICE = {"metadata": {"name": "my-db"}, "spec": {"clusterIP": "10.96.7.7", "ports": [{"port": 5432}]}}


def pod(name: str, image: str, *command: str, **more: Any) -> dict[str, Any]:
    container = {"name": "main", "image": image, **({"command": list(command)} if command else {}), **more}
    return {"metadata": {"name": name}, "spec": {"containers": [container]}}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    folder = tmp_path_factory.mktemp("sessions")
    (folder / "my_handlers.py").write_text(HANDLERS)
    (folder / "lives.yaml").write_text(LIVES)
    with up(folder, "--nodes", "1", "--lives", str(folder / "lives.yaml"), "--user", "bob") as process:
        config = {"metadata": {"name": "settings"}, "data": {"color": "blue\n"}}
        process.ask("/api/v1/namespaces/default/configmaps", config)
        reading = pod(
            "sh",
            "busybox",
            *("sh", "-c", "echo up; touch /tmp/begun; sleep 1000"),
            env=[{"name": "COLOR", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "color"}}}],
            volumeMounts=[{"name": "settings", "mountPath": "/etc/settings"}],
        )
        projected = [{"serviceAccountToken": {"path": "token"}}, {"configMap": {"name": "settings"}}]
        reading["spec"]["volumes"] = [
            {"name": "settings", "configMap": {"name": "settings"}},
            {"name": "account", "projected": {"sources": projected}},
        ]
        reading["spec"]["containers"][0]["volumeMounts"].append({"name": "account", "mountPath": "/account"})
        probe = {"httpGet": {"port": 80, "path": "/index.html"}, "periodSeconds": 1}
        hook = {"exec": {"command": ["/bin/sh", "-c", "echo Hello from the postStart handler > /usr/share/message"]}}
        hooked = pod("hooked", "nginx", lifecycle={"postStart": hook})
        process.ask("/api/v1/namespaces/default/services", SERVICE)
        web = pod("web", "nginx", readinessProbe=probe)
        for one in (reading, web, pod("db", "postgres"), pod("gone", "nginx"), hooked):
            process.ask(PODS, one)
        for name in ("sh", "web", "db", "gone", "hooked"):
            process.eventually(f"{PODS}/{name}", lambda found: found["status"].get("phase") == "Running")
        yield process


def executed(cluster: Process, name: str, *command: str, stdin: str = "") -> tuple[str, str, int]:
    """What it prints to standard output and standard error, and its exit code."""
    out, errors, code = exchanged(cluster, name, *command, stdin=stdin.encode())
    return out.decode(), errors.decode(), code


def exchanged(cluster: Process, name: str, *command: str, stdin: bytes = b"") -> tuple[bytes, bytes, int]:
    query = urllib.parse.urlencode([("stdout", "true"), ("stderr", "true"), *(("command", one) for one in command)])
    found = {1: b"", 2: b"", 3: b""}
    with opened(cluster, f"{PODS}/{name}/exec?{query}{'&stdin=true' if stdin else ''}") as client:
        if stdin:
            client.send_binary(b"\0" + stdin)
            client.send_binary(b"\xff\0")
        while message := client.recv():
            found[message[0]] += message[1:]
    status = json.loads(found[3])
    code = 0 if status["status"] == "Success" else int(status["details"]["causes"][0]["message"])
    return found[1], found[2], code


def test_commands_see_files_and_variables_of_their_container(cluster: Process) -> None:
    assert executed(cluster, "sh", "sh", "-c", "ls /tmp; cat /etc/settings/color; echo $COLOR; hostname; exit 3") == (
        "begun\nblue\nblue\nsh\n",
        "",
        3,
    )
    assert executed(cluster, "sh", "sh", "-c", "echo kept > /tmp/begun")[2] == 0
    assert executed(cluster, "sh", "cat", "/tmp/begun", "/etc/nothing") == (
        "kept\n",
        "cat: can't open '/etc/nothing': No such file or directory\n",
        1,
    )
    token, _, code = executed(cluster, "sh", "cat", "/account/token")
    assert (token.count("."), code) == (2, 0)
    assert cluster.ask("/version", token=token)["major"] == "1"
    assert executed(cluster, "sh", "touch", "/account/x")[1] == "touch: /account/x: Read-only file system\n"
    out, errors, code = executed(cluster, "sh", "psql")
    assert (out, code) == ("", 127)
    assert "kemu up --handlers" in errors


def test_commands_see_services_and_what_a_hook_has_left(cluster: Process) -> None:
    assert (
        executed(cluster, "sh", "printenv", "MY_DB_SERVICE_HOST", "MY_DB_PORT")[0]
        == "10.96.7.7\ntcp://10.96.7.7:5432\n"
    )
    assert executed(cluster, "hooked", "cat", "/usr/share/message") == ("Hello from the postStart handler\n", "", 0)


def test_archives_go_in_and_out_as_kubectl_cp_sends_them(cluster: Process) -> None:
    content = bytes(range(256)) * 20
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:") as made:
        member = tarfile.TarInfo("sent/deep/data.bin")
        member.size = len(content)
        made.addfile(member, io.BytesIO(content))
    assert transferred(cluster, "sh", "tar", "-xmf", "-", "-C", "/tmp", stdin=packed.getvalue()) == (b"", 0)
    assert executed(cluster, "sh", "ls", "/tmp/sent/deep")[0] == "data.bin\n"
    out, code = transferred(cluster, "sh", "tar", "cf", "-", "/tmp/sent")
    with tarfile.open(fileobj=io.BytesIO(out)) as got:
        found = got.extractfile("tmp/sent/deep/data.bin")
        assert found is not None
        assert (found.read(), code) == (content, 0)
    assert executed(cluster, "sh", "tar", "cf", "-", "/nosuch")[1] == "tar: /nosuch: No such file or directory\n"
    assert executed(cluster, "sh", "tar", "xf", "-", stdin="no archive" * 100)[1:] == ("tar: invalid tar magic\n", 1)
    _, errors, code = executed(cluster, "sh", "tar", "czf", "-", "/tmp")
    assert code == 127
    assert "the option -z of tar is not understood" in errors


def transferred(cluster: Process, name: str, *command: str, stdin: bytes = b"") -> tuple[bytes, int]:
    """The bytes that it prints, and its exit code."""
    out, _, code = exchanged(cluster, name, *command, stdin=stdin)
    return out, code


def test_a_watch_comes_over_a_socket_too(cluster: Process) -> None:
    """As fabric8's informers open it: a text for each event."""
    path = "/api/v1/namespaces/default/configmaps"
    version = cluster.ask(path)["metadata"]["resourceVersion"]
    with opened(cluster, f"{path}?watch=true&resourceVersion={version}&timeoutSeconds=2", protocol="") as client:
        cluster.ask(path, {"metadata": {"name": "seen"}})
        cluster.ask(f"{path}/seen", method="DELETE")
        events = []
        while isinstance(text := client.recv(), str) and text:
            events.append(json.loads(text))
    assert [(one["type"], one["object"]["metadata"]["name"]) for one in events] == [
        ("ADDED", "seen"),
        ("DELETED", "seen"),
    ]
    with pytest.raises(websocket.WebSocketBadStatusException) as refused:
        opened(cluster, "/api/v1/namespaces/default/nosuch?watch=true", protocol="").__enter__()
    assert refused.value.status_code == 404


def test_a_handler_answers_for_the_containers_that_its_rule_names(cluster: Process) -> None:
    assert executed(cluster, "db", "psql", "-c", "x", stdin="select q\n") == (
        "db/main: psql -c x\nSELECT Q\n",
        "warned\n",
        7,
    )


def test_a_handler_that_fails_is_told_to_the_client(cluster: Process) -> None:
    with opened(cluster, f"{PODS}/db/attach?stdout=true") as client:
        assert client.recv() == b"\1"
        status = json.loads(client.recv()[1:])
        assert status["message"] == "the handler has failed: RuntimeError: out of order"


def test_a_page_that_is_gone_fails_the_probe_that_asks_for_it(cluster: Process) -> None:
    def is_ready(found: Any) -> bool:
        return any(one["type"] == "Ready" and one["status"] == "True" for one in found["status"]["conditions"])

    page = "/usr/share/nginx/html/index.html"
    assert is_ready(cluster.ask(f"{PODS}/web"))
    assert executed(cluster, "web", "mv", "-v", page, "/tmp/")[0].startswith("renamed ")
    cluster.eventually(f"{PODS}/web", lambda found: not is_ready(found))
    executed(cluster, "web", "mv", "/tmp/index.html", page)
    cluster.eventually(f"{PODS}/web", is_ready)


def test_ports(cluster: Process) -> None:
    def sent(name: str, data: bytes) -> bytes:
        with opened(cluster, f"{PODS}/{name}/portforward?ports=80", protocol="v4.channel.k8s.io") as client:
            assert [client.recv(), client.recv()] == [b"\0\x50\0", b"\1\x50\0"]
            client.send_binary(b"\0" + data)
            return bytes(client.recv())

    assert b"Welcome to nginx" in sent("web", b"GET / HTTP/1.1\r\nHost: web\r\n\r\n")
    assert sent("db", b"hello") == b"\0<hello>"
    assert sent("sh", b"hello").startswith(b"\1error forwarding port 80 to pod: the containers of this cluster")


def test_a_session_ends_with_its_container(cluster: Process) -> None:
    with opened(cluster, f"{PODS}/gone/exec?command=sleep&command=1000&stdout=true") as client:
        assert client.recv() == b"\1"
        cluster.ask(f"{PODS}/gone", {"gracePeriodSeconds": 0}, method="DELETE")
        begun = time.monotonic()
        status = json.loads(client.recv()[1:])
        assert status["status"] == "Failure"
        assert time.monotonic() - begun < 10


def test_who_is_attached_hears_what_a_container_says_until_it_ends(cluster: Process) -> None:
    ticking = pod("ticks", "busybox", "sh", "-c", "for i in 1 2 3; do sleep 1; echo tick $i; done; exit 5")
    ticking["spec"]["restartPolicy"] = "Never"
    cluster.ask(PODS, ticking)
    cluster.eventually(f"{PODS}/ticks", lambda found: found["status"].get("phase") == "Running")
    found = b""
    with opened(cluster, f"{PODS}/ticks/attach?stdout=true") as client:
        while message := client.recv():
            if message[0] == 3:
                assert json.loads(message[1:])["status"] == "Success"
                break
            found += message[1:]
    assert found.endswith(b"tick 2\ntick 3\n")


def test_logs_come_over_a_socket_too(cluster: Process) -> None:
    with opened(cluster, f"{PODS}/sh/log", protocol="binary.k8s.io") as client:
        assert client.recv() == b"up\n"


def test_who_may_not_is_told_before_anything_is_opened(cluster: Process) -> None:
    users = yaml.safe_load(Path(cluster.up["kubeconfig"]).read_text())["users"]
    bob = next(one["user"]["token"] for one in users if one["name"].startswith("bob"))
    asked = f"{PODS}/sh/exec?command=ls&stdout=true"
    for token, code in ((bob, 403), ("", 403), ("wrong", 401)):
        assert refusal(cluster, asked, token=token) == code
    assert refusal(cluster, asked, token="", origin="https://evil.example") == 403
    assert refusal(cluster, f"{PODS}/none/exec?command=ls&stdout=true") == 404
    assert refusal(cluster, f"{PODS}/sh/exec?command=ls&stdout=true&container=none") == 400
    assert refusal(cluster, asked, protocol="v9.channel.k8s.io") == 400


def test_what_is_no_session_is_cut_off(cluster: Process) -> None:
    asked = f"{PODS}/sh/exec?command=cat&stdin=true&stdout=true"
    for data in (b"\xff" * 2_000_000, websocket.ABNF.create_frame(b"\0" + b"x" * (5 << 20), 2).format()):
        with opened(cluster, asked) as client:
            client.recv()
            with contextlib.suppress(OSError):
                client.sock.sendall(data)
            with contextlib.suppress(websocket.WebSocketException, OSError):
                while client.recv():
                    pass
            assert not client.connected or client.recv() == b""
    assert cluster.ask("/version")["major"] == "1"


@contextlib.contextmanager
def opened(cluster: Process, path: str, **more: Any) -> Iterator[Any]:
    client = connected(cluster, path, **more)
    socket = client.sock
    try:
        yield client
    finally:
        client.shutdown()
        socket.close()


def connected(
    cluster: Process, path: str, *, token: str | None = None, protocol: str = "v5.channel.k8s.io", **more: Any
) -> Any:
    shown = cluster.token if token is None else token
    return websocket.create_connection(
        cluster.cluster["server"].replace("https", "wss") + path,
        header=[f"Authorization: Bearer {shown}"] if shown else [],
        subprotocols=[protocol] if protocol else None,
        sslopt={"cert_reqs": ssl.CERT_NONE},
        timeout=20,
        **({"suppress_origin": True} | more),
    )


def refusal(cluster: Process, path: str, *, origin: str = "", **more: Any) -> int:
    stated = {"origin": origin, "suppress_origin": False} if origin else {}
    with pytest.raises(websocket.WebSocketBadStatusException) as raised:
        connected(cluster, path, **stated, **more)
    return int(raised.value.status_code)


def test_handlers_that_cannot_be_loaded_are_named(tmp_path: Path) -> None:
    scenario = clusters.of_nodes(1)
    file = tmp_path / "mine.py"
    for text, complaint in (
        ("def exec(session): pass", "must be a function that begins with async def"),
        ("x = 1", "has none of the functions exec, attach, port_forward"),
        ("1 / 0", "ZeroDivisionError"),
        ("async def exec(session:", "SyntaxError"),
    ):
        file.write_text(text)
        with pytest.raises(KemuError, match=complaint):
            container_handlers.load(scenario, file)
    with pytest.raises(KemuError, match="is no Python file"):
        container_handlers.load(scenario, tmp_path / "none.py")


def test_a_file_of_handlers_answers_for_all(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text("async def exec(session): return 1\n")
    found = container_handlers.load(clusters.of_nodes(1), file)
    assert list(found.for_all) == ["exec"]
    assert found.find("exec", core_v1_pb2.Pod(), core_v1_pb2.Container()) is found.for_all["exec"]
    assert found.find("attach", core_v1_pb2.Pod(), core_v1_pb2.Container()) is None
