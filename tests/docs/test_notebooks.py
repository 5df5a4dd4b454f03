"""The notebooks of examples/notebooks run from the first cell to the last, and are stored without their outputs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_there_are_some() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_runs_to_its_end(notebook: Path, tmp_path: Path) -> None:
    stored = json.loads(notebook.read_text())
    code = [cell for cell in stored["cells"] if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] or cell["execution_count"] for cell in code), "outputs are not stored: they drift"
    copy = tmp_path / notebook.name
    # A process of its own: the kernel and its client warn of what is not ours to mend.
    script = (
        "import nbformat, sys; from nbclient import NotebookClient; "
        "notebook = nbformat.read(sys.argv[1], 4); "
        "NotebookClient(notebook, timeout=120, resources={'metadata': {'path': sys.argv[3]}}).execute(); "
        "nbformat.write(notebook, sys.argv[2])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(notebook), str(copy), str(FOLDER)],
        capture_output=True, text=True, check=False, timeout=200,
        env={**os.environ, "IPYTHONDIR": str(tmp_path), "JUPYTER_RUNTIME_DIR": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    cells = [cell for cell in json.loads(copy.read_text())["cells"] if cell["cell_type"] == "code"]
    assert all(cell["execution_count"] for cell in cells)
    kinds = {kind for cell in cells for output in cell["outputs"] for kind in output.get("data", {})}
    assert "image/svg+xml" in kinds
