"""What `kemu up --without` leaves out."""

from __future__ import annotations

import pytest

from kemu.doors.cli import main
from kemu.lab.up import clusters


def test_nodes_without_kubelets_are_objects() -> None:
    whole = clusters.completed(clusters.of_nodes(2))
    bare = clusters.without_kubelets(whole)
    assert bare.nodes == ()
    assert [one.message for one in bare.setup[len(whole.setup) :]] == [node.message for node in whole.nodes]
    assert bare.schedulers == whole.schedulers


def test_an_unknown_part_is_refused_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["up", "--without", "schedulers,kubelet"]) == 2
    assert "there is no 'kubelet' to leave out, but schedulers, controllers, kubelets" in capsys.readouterr().err
