"""Users of ``kemu up``: each has a token and a context of his own, and does what his roles allow."""

from __future__ import annotations

import urllib.error
from pathlib import Path
from typing import Any

import pytest
import yaml

from kemu.doors.cli.commands.clusters import up as up_command
from kemu.errors import KemuError
from tests.up.processes import Process, up

SCENARIO = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: users}
spec:
  duration: 1h
  nodes: [{name: n-1, allocatable: {cpu: "4", memory: 8Gi, pods: "110"}}]
  users:
    - {name: alice, groups: [dev], roles: [{role: edit, namespace: default}]}
"""


def code_of(process: Process, path: str, token: str, **more: Any) -> int:
    try:
        process.ask(path, token=token, **more)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    return 200


def test_users_have_contexts_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "users.yaml"
    file.write_text(SCENARIO)
    with up(tmp_path, str(file), "--user", "system:node:n-1", "--user", "bob=qa,ops") as process:
        config = yaml.safe_load(Path(process.up["kubeconfig"]).read_text())
        assert config["current-context"] == "kemu"
        tokens = {one["name"]: one["user"]["token"] for one in config["users"]}
        assert list(tokens) == ["kemu", "alice@kemu", "system:node:n-1@kemu", "bob@kemu"]
        assert len(set(tokens.values())) == 4
        assert [one["name"] for one in config["contexts"]] == list(tokens)
        pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "main", "image": "pause"}]}}
        pods = "/api/v1/namespaces/default/pods"
        assert code_of(process, pods, tokens["bob@kemu"], body=pod) == 403
        assert code_of(process, pods, tokens["alice@kemu"], body=pod) == 200
        assert code_of(process, "/api/v1/nodes", tokens["alice@kemu"]) == 403
        assert code_of(process, "/api/v1/nodes", tokens["system:node:n-1@kemu"]) == 403
        assert (
            code_of(process, "/api/v1/nodes?fieldSelector=metadata.name%3Dn-1", tokens["system:node:n-1@kemu"]) == 200
        )


@pytest.mark.parametrize("text", ["", "=dev", "a\tb", "é"])
def test_a_name_that_cannot_be_sent_is_refused(text: str) -> None:
    with pytest.raises(KemuError, match="--user"):
        up_command._user(text)
