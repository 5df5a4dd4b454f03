"""The programs of ``kemu envtest-assets``, started as envtest of controller-runtime does."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kemu.doors.cli.main import main
from kemu.emulated.gateway.authentication.certificates import Authority
from kemu.emulated.objects.identities import User
from kemu.emulated.real import components
from kemu.errors import KemuError
from kemu.lab.up.envtest import assets, flags, servers

DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"kind": "Widget", "plural": "widgets"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"size": {"type": "integer", "default": 3}}}
                        },
                    }
                },
            }
        ],
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("assets")
    assert main(["envtest-assets", str(made)]) == 0
    return made


class ApiServer:
    """With the certificates that envtest makes."""

    def __init__(self, assets: Path, folder: Path, *more: str, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.authority = Authority.make()
        certificates = Authority.make()
        server = certificates.server(["127.0.0.1"])
        (folder / "apiserver.crt").write_bytes(server.certificate)
        (folder / "apiserver.key").write_bytes(server.key)
        (folder / "ca.crt").write_bytes(self.authority.certificate)
        (folder / "sa-signer.key").write_bytes(Authority.make().pair.key)
        self.trusted = certificates.certificate.decode()
        (self.port,) = components.free_ports(1)
        self.url = f"https://127.0.0.1:{self.port}"
        self.begun = time.monotonic()
        self.process = subprocess.Popen(
            [
                assets / "kube-apiserver",
                "--allow-privileged=true",
                "--authorization-mode=RBAC",
                "--bind-address=127.0.0.1",
                f"--cert-dir={folder}",
                f"--client-ca-file={folder}/ca.crt",
                "--disable-admission-plugins=ServiceAccount",
                "--etcd-servers=http://127.0.0.1:1",
                f"--secure-port={self.port}",
                f"--service-account-issuer={self.url}/",
                f"--service-account-key-file={folder}/sa-signer.crt",
                f"--service-account-signing-key-file={folder}/sa-signer.key",
                "--service-cluster-ip-range=10.0.0.0/24",
                *more,
            ],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TMPDIR": str(folder), **environment},
        )

    def context(self, user: User | None) -> ssl.SSLContext:
        context = ssl.create_default_context(cadata=self.trusted)
        if user is not None:
            pair = self.authority.client(user)
            file = self.folder / f"{user.name}.pem"
            file.write_bytes(pair.certificate + pair.key)
            context.load_cert_chain(file)
        return context

    def ask(self, path: str, user: User | None, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=20, context=self.context(user)) as answer:
            found = answer.read()
        return json.loads(found) if found.startswith(b"{") else found.decode()

    def code(self, path: str, user: User | None) -> int:
        try:
            self.ask(path, user)
        except urllib.error.HTTPError as error:
            return error.code
        return 200

    def wait(self, within_s: float = 60.0) -> None:
        while time.monotonic() < self.begun + within_s:
            assert self.process.poll() is None, self.process.communicate()
            with contextlib.suppress(urllib.error.URLError):
                if self.code("/healthz", None) == 200 == self.code("/readyz", None):
                    return
            time.sleep(0.05)
        raise AssertionError("it does not come up")

    def stop(self) -> str:
        """Standard error."""
        self.process.send_signal(signal.SIGTERM)
        errors = self.process.communicate(timeout=30)[1]
        assert self.process.returncode == 0, errors
        return errors


@contextlib.contextmanager
def api_server(assets: Path, folder: Path, *more: str, **environment: str) -> Iterator[ApiServer]:
    made = ApiServer(assets, folder, *more, environment=environment)
    try:
        made.wait()
        yield made
    finally:
        if made.process.poll() is None:
            made.process.kill()
        made.process.communicate()


ADMIN = User("admin", ("system:masters",))
BOB = User("bob", ("g",))


def test_an_api_server_alone(folder: Path, tmp_path: Path) -> None:
    with api_server(folder, tmp_path, "--feature-gates=Some=true") as server:
        assert server.code("/api/v1/pods", None) == 403
        assert server.code("/api/v1/pods", BOB) == 403
        namespaces = server.ask("/api/v1/namespaces", ADMIN)["items"]
        assert [one["metadata"]["name"] for one in namespaces] == [
            "default", "kube-node-lease", "kube-public", "kube-system",
        ]  # fmt: skip
        for kind in ("nodes", "serviceaccounts", "configmaps"):
            assert not [
                one["metadata"]["name"]
                for one in server.ask(f"/api/v1/{kind}", ADMIN)["items"]
                if one["metadata"]["name"] in ("default", "kube-root-ca.crt") or kind == "nodes"
            ]

        server.ask("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", ADMIN, DEFINITION)
        widgets = "/apis/example.com/v1/namespaces/default/widgets"
        end = time.monotonic() + 20
        while server.code(widgets, ADMIN) != 200 and time.monotonic() < end:
            time.sleep(0.05)
        widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {}}
        assert server.ask(widgets, ADMIN, widget)["spec"] == {"size": 3}

        # Nobody schedules, and no account is missed.
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        made = server.ask("/api/v1/namespaces/default/pods", ADMIN, pod)
        assert "volumes" not in made["spec"]

        # Nothing acts on what is stored: what kemu does not simulate is stored, too. New nodes are not ready.
        claims = [{"name": "gpu", "resourceClaimName": "c"}]
        containers = [{"name": "c", "image": "i"}]
        pod = {"metadata": {"name": "claims"}, "spec": {"containers": containers, "resourceClaims": claims}}
        made = server.ask("/api/v1/namespaces/default/pods", ADMIN, pod)
        assert made["spec"]["resourceClaims"] == claims
        node = server.ask("/api/v1/nodes", ADMIN, {"metadata": {"name": "n1"}})
        assert [taint["key"] for taint in node["spec"]["taints"]] == ["node.kubernetes.io/not-ready"]

        # Claims in templates have a kind.
        wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        claim = {"metadata": {"name": "data"}, "spec": wanted}
        labels = {"matchLabels": {"a": "b"}}
        template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        spec = {"serviceName": "s", "selector": labels, "template": template, "volumeClaimTemplates": [claim]}
        stateful_set = {"metadata": {"name": "s"}, "spec": spec}
        made = server.ask("/apis/apps/v1/namespaces/default/statefulsets", ADMIN, stateful_set)
        assert made["spec"]["volumeClaimTemplates"][0]["kind"] == "PersistentVolumeClaim"

        # Tokens of accounts are signed with the key that was given, in the name that was given.
        account = {"metadata": {"name": "a"}}
        server.ask("/api/v1/namespaces/default/serviceaccounts", ADMIN, account)
        assert server.ask("/.well-known/openid-configuration", ADMIN)["issuer"] == f"{server.url}/"

        begun = time.monotonic()
        errors = server.stop()
        assert time.monotonic() - begun < 10
    assert "does not heed --feature-gates=Some=true" in errors
    assert not list(tmp_path.glob("kemu-envtest-*"))


def test_a_run_is_kept(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with api_server(folder, tmp_path, KEMU_ENVTEST_OUT=str(tmp_path / "runs")) as server:
        pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        server.ask("/api/v1/namespaces/default/pods", ADMIN, pod)
        server.stop()
    (kept,) = (tmp_path / "runs").iterdir()
    assert kept.name == f"{Path.cwd().name}-1"
    assert main(["story", str(kept), "--all"]) == 0
    assert "p is created" in capsys.readouterr().out


def test_etcd_is_healthy_until_it_is_stopped(folder: Path) -> None:
    url = f"http://127.0.0.1:{components.free_ports(1)[0]}"
    words = [f"--listen-client-urls={url}", "--data-dir=/nowhere", "--unsafe-no-fsync=true"]
    with subprocess.Popen([folder / "etcd", *words], stderr=subprocess.PIPE) as process:
        try:
            end = time.monotonic() + 30
            while True:
                with contextlib.suppress(urllib.error.URLError):
                    with urllib.request.urlopen(f"{url}/health", timeout=5) as answer:
                        assert json.load(answer)["health"] == "true"
                    break
                assert time.monotonic() < end
                time.sleep(0.02)
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0


def test_help_names_flags_as_envtest_looks_for_them(folder: Path) -> None:
    for name, flag in (("kube-apiserver", "--secure-port"), ("etcd", "--listen-client-urls")):
        found = subprocess.run([folder / name, "--help"], capture_output=True, text=True, check=True, timeout=30)
        assert any(line.strip().startswith(flag) for line in found.stdout.splitlines())
        assert "--insecure-port" not in found.stdout


def test_kubectl_is_the_one_on_the_path(folder: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{folder}:{tmp_path}:/usr/bin/none"}
    asked = [str(folder / "kubectl"), "version", "a b"]
    missing = subprocess.run(asked, capture_output=True, text=True, env=environment, timeout=30)
    assert missing.returncode == 1
    assert "there is no kubectl on the PATH" in missing.stderr
    (tmp_path / "kubectl").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "kubectl").chmod(0o755)
    found = subprocess.run(asked, capture_output=True, text=True, env=environment, check=True, timeout=30)
    assert found.stdout == "version a b\n"


def test_programs_of_others_are_not_overwritten(tmp_path: Path) -> None:
    assets.write(tmp_path)
    assets.write(tmp_path)
    (tmp_path / "etcd").write_text("mine")
    with pytest.raises(KemuError, match="etcd is none of kemu's scripts"):
        assets.write(tmp_path)


def test_wrong_flags_are_told(tmp_path: Path) -> None:
    with pytest.raises(KemuError, match="go together"):
        flags.parse(["--tls-cert-file=a"])
    with pytest.raises(KemuError, match="ports end at 65535"):
        flags.parse(["--secure-port=70000"])
    read = flags.parse([f"--cert-dir={tmp_path}", "--client-ca-file=/no/such"])
    assert read.certificate is None
    with pytest.raises(KemuError, match="/no/such: No such file"):
        servers.make_credentials(read)


def test_flags_decide_about_admission_and_authorization(capsys: pytest.CaptureFixture[str]) -> None:
    usual = servers.made_of(flags.parse([])).api_servers
    assert usual.service_ranges == ["10.0.0.0/24"]
    assert servers.made_of(flags.parse([])).store.fsync == "none", "as envtest starts etcd"
    two = servers.made_of(flags.parse(["--service-cluster-ip-range=10.1.2.3/16,fd00::/112"])).api_servers
    assert two.service_ranges == ["10.1.0.0/16", "fd00::/112"]
    with pytest.raises(KemuError, match="--service-cluster-ip-range: 'x' does not appear"):
        flags.parse(["--service-cluster-ip-range=x"])
    assert usual.authorization == ["AlwaysAllow"]
    assert usual.enable_admission_plugins == ["ServiceAccount", "TaintNodesByCondition"]
    assert usual.disable_admission_plugins == []
    words = [
        "--disable-admission-plugins=ServiceAccount,Priority,AlwaysPullImages",
        "--authorization-mode=RBAC,Webhook",
    ]
    stated = servers.made_of(flags.parse(words)).api_servers
    assert stated.authorization == ["RBAC"]
    assert stated.enable_admission_plugins == ["TaintNodesByCondition"]
    assert stated.disable_admission_plugins == ["Priority"]
    told = capsys.readouterr().err
    assert "--authorization-mode=Webhook" in told
    assert "the admission plugin AlwaysPullImages" in told
