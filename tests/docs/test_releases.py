"""What docs/security.md says of packages and releases: scripts/audit and scripts/sign."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KNOWN = {
    "id": "PYSEC-2024-1",
    "aliases": ["CVE-2024-22195"],
    "summary": "an attribute filter lets HTML in",
    "affected": [
        {
            "package": {"ecosystem": "PyPI", "name": "jinja2"},
            "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "3.1.3"}]}],
        }
    ],
}
"""As osv-scanner prints it."""
SCANNER = """\
#!/bin/sh
case "$*" in *--download-offline-databases*) [ -e "$0.network" ] || { echo 'no such host' >&2; exit 127; };; esac
[ -e "$0.database" ] || { echo 'no offline version of the OSV database is available' >&2; exit 127; }
/bin/cat "$0.database"
exit "$(/bin/cat "$0.code")"
"""
"""It answers as the real one does without a network, or without a database."""


@pytest.fixture
def scanner(tmp_path: Path) -> Path:
    program = tmp_path / "osv-scanner"
    program.write_text(SCANNER)
    program.chmod(0o755)
    return program


def audit(folder: Path, program: str, *words: str) -> tuple[int, str]:
    (folder / "list.txt").write_text("jinja2==3.1.2\naiohttp==3.14.5\n")
    environment = {
        **os.environ,
        "OSV_SCANNER": program,
        "XDG_CACHE_HOME": str(folder / "cache"),
        "OSV_SCANNER_LOCAL_DB_CACHE_DIRECTORY": str(folder / "database"),
        "PATH": "/nowhere",
    }
    command = [sys.executable, str(ROOT / "scripts" / "audit"), str(folder / "list.txt"), *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_without_a_scanner_or_a_database_it_says_that_nothing_was_audited(scanner: Path, tmp_path: Path) -> None:
    code, said = audit(tmp_path, "")
    assert (code, said.startswith("not audited: there is no osv-scanner")) == (0, True)
    code, said = audit(tmp_path, str(scanner))
    assert (code, said.startswith("not audited: there is no database in")) == (0, True)
    assert "no such host" in said
    assert audit(tmp_path, str(scanner), "--strict")[0] == 2


def test_known_vulnerabilities_are_told_with_what_mends_them(scanner: Path, tmp_path: Path) -> None:
    package = {"package": {"name": "jinja2", "version": "3.1.2", "ecosystem": "PyPI"}, "vulnerabilities": [KNOWN]}
    Path(f"{scanner}.database").write_text(json.dumps({"results": [{"packages": [package]}]}))
    Path(f"{scanner}.code").write_text("1")
    code, said = audit(tmp_path, str(scanner))
    assert code == 1
    told = "jinja2 3.1.2: PYSEC-2024-1, CVE-2024-22195: an attribute filter lets HTML in; mended in 3.1.3"
    assert said.splitlines() == [told, "audited: 2 packages, 1 known vulnerabilities, by a database of an unknown day"]
    Path(f"{scanner}.database").write_text(json.dumps({"results": []}))
    Path(f"{scanner}.code").write_text("0")
    code, said = audit(tmp_path, str(scanner))
    assert (code, "2 packages, no known" in said) == (0, True)


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="no ssh-keygen: apt-get install openssh-client")
def test_a_release_is_what_a_maintainer_has_signed(tmp_path: Path) -> None:
    def sign(*words: str) -> tuple[int, str]:
        command = [str(ROOT / "scripts" / "sign"), *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    allowed = ""
    for name in ("maintainer", "stranger", "elsewhere"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", name], cwd=tmp_path, check=True)
        key = " ".join((tmp_path / f"{name}.pub").read_text().split()[:2])
        if name != "stranger":
            space = "kemu-release" if name == "maintainer" else "git"
            allowed += f'{name}@example.org namespaces="{space}" {key}\n'
    (tmp_path / "allowed").write_text(allowed)
    wheel, sums = tmp_path / "kemu.whl", tmp_path / "SHA256SUMS"
    wheel.write_text("the wheel")
    sums.write_text(sign("sums", "kemu.whl")[1])
    assert sign("check", "allowed", "SHA256SUMS") == (1, "scripts/sign: SHA256SUMS.sig: there is no signature\n")
    assert sign("make", "maintainer", "SHA256SUMS")[0] == 0
    assert sign("check", "allowed", "SHA256SUMS") == (
        0,
        "signed by maintainer@example.org, as are all files that it names\n",
    )
    wheel.write_text("another wheel")
    assert sign("check", "allowed", "SHA256SUMS")[0] == 1
    sums.write_text(sign("sums", "kemu.whl")[1])
    assert "is not what maintainer@example.org has signed" in sign("check", "allowed", "SHA256SUMS")[1]
    for name in ("stranger", "elsewhere"):
        assert sign("make", name, "SHA256SUMS")[0] == 0
        assert sign("check", "allowed", "SHA256SUMS")[0] == 1, name
    assert sign("check", "allowed")[0] == 2
