"""Who uses no expression does not pay for them, and hash seeds change nothing."""

from __future__ import annotations

import subprocess
import sys

_ANSWERS = """
from tests.cel import comparing
from tests.cel.test_reference import recorded
import hashlib, itertools
digest = hashlib.sha256()
for line in itertools.islice(recorded("crds"), 300):
    digest.update(repr(comparing.answer(line["case"])).encode())
print(digest.hexdigest())
"""


def test_a_scenario_without_expressions_imports_nothing_of_them() -> None:
    imports = "import sys, kemu; kemu.run; import kemu.emulated.apiserver.server"
    code = f"{imports}; print([name for name in sys.modules if '.cel' in name or name == 're2'])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"


def test_answers_do_not_depend_on_hash_seeds() -> None:
    digests = {
        subprocess.run(
            [sys.executable, "-c", _ANSWERS],
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
            env={"PYTHONHASHSEED": seed, "PATH": ""},
        ).stdout
        for seed in ("0", "1")
    }
    assert len(digests) == 1
