"""``scripts/test`` runs beside others, at a low priority, what only computes: nothing that has limits in real
time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import computing

FILES = {
    "tests/conftest.py": "import subprocess\n",
    "tests/helpers.py": "import time\n",
    "tests/servers.py": "from tests import inner\n",
    "tests/inner.py": "def start():\n    import socket\n",
    "tests/under/conftest.py": "from tests.servers import (\n    start,\n)\n",
    "tests/under/test_a.py": "",
}


@pytest.mark.parametrize(
    ("text", "computes"),
    [
        ("from tests import helpers\nimport timeit\n", True),
        ("import subprocess\n", False),
        ("def test_one():\n    from socket import socket\n", False),
        ("import time\n", False),
        ("async def test_one(): ...\n", False),
        ("def test_one(local_ray): ...\n", False),
        ("from kemu.lab.up import embedded\n", False),
        ("from kemu.lab.exploration import explorer\n", True),
        ("import tests.servers\n", False),
        ("from tests.servers import start\n", False),
        ("from tests import (\n    helpers,\n    inner,\n)\n", False),
    ],
)
def test_a_file_waits_where_it_or_what_it_imports_of_the_tests_does(tmp_path: Path, text: str, computes: bool) -> None:
    for name, other in {**FILES, "tests/test_it.py": text}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(other)
    files = computing.Files(tmp_path)
    assert files.computes("tests/test_it.py") is computes
    assert not files.computes("tests/under/test_a.py"), "its conftest.py imports what waits"


@pytest.mark.parametrize("name", ["scenarios/test_shipped", "scenarios/test_realistic", "mutants/test_mutants"])
def test_those_that_take_longest_only_compute(name: str) -> None:
    assert computing.computing([f"tests/{name}.py"])
