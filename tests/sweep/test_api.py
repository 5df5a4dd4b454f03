"""``kemu.experiment``, and what ``kemu sweep`` prints: the claims of one small sweep, judged."""

import json
import shlex
from pathlib import Path

import pytest

import kemu
from kemu.doors.cli import main
from tests.sweep import test_sweeps

RATE = 'rate="2/s"'
CLAIMS = f"""\
  metrics: [pods_created, waiting.max_s]
  claims:
    - {{id: true-one, says: 'pods_created({RATE}) > 5', confidence: 0.5}}
    - {{id: wrong-one, says: 'pods_created({RATE}) < 5', confidence: 0.5}}
    - {{id: bold-one, says: 'waiting.max_s({RATE}) > waiting.max_s(rate="0.5/s")', confidence: 0.9999}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("sweep")
    (made / "small.yaml").write_text(test_sweeps.TEXT + CLAIMS)
    return made


@pytest.fixture(scope="module")
def sweep(folder: Path) -> kemu.Sweep:
    seen: list[tuple[int, int]] = []
    found = kemu.experiment(folder / "small.yaml", out=folder / "out", progress=lambda *each: seen.append(each))
    assert seen == [(number, 6) for number in range(1, 7)]
    return found


def test_claims_are_judged(sweep: kemu.Sweep) -> None:
    assert [(claim.id, claim.outcome) for claim in sweep.claims] == [
        ("true-one", "holds"),
        ("wrong-one", "fails"),
        ("bold-one", "undecided"),
    ]
    assert sweep.claims[2].more_seeds
    assert (sweep.verdict, sweep.holds) == ("fails", False)
    with pytest.raises(kemu.RunFailed, match="small fails\nwrong-one fails: "):
        sweep.check()
    pods = sweep.variants[1]["metrics"]["pods_created"]
    assert (pods["mean"], pods["low"], pods["high"], pods["seeds"]) == (6.0, 6.0, 6.0, 3)
    assert sweep.sql("SELECT count(*) AS runs, sum(pods_created) AS pods FROM runs") == [{"runs": 6, "pods": 35}]


def test_the_command_prints_the_same(
    sweep: kemu.Sweep, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["sweep", str(folder / "small.yaml"), "--out", str(folder / "out")]
    assert main.main([*command, "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == sweep.data
    monkeypatch.setenv("COLUMNS", "100")
    assert main.main([*command, "--no-plots"]) == 1
    told = capsys.readouterr().out
    assert "small  2 variants with 3 seeds each: 6 cells" in told
    assert "✗ wrong-one  fails" in told
    assert "? bold-one  undecided (needs about 1" in told
    assert "fails: wrong-one" in told.splitlines()
    # A cell again, with its run folder.
    again = next(line for line in told.splitlines() if " run " in line and "--seed" in line)
    assert f"{folder}/out/scenario.yaml --set 'workloads[0].arrivals.poisson.rate=0.5/s' --seed 1" in again
    # And what it proposes to look at them works.
    report = next(line for line in told.splitlines() if " report " in line)
    assert main.main(shlex.split(report)[1:]) == 0
    assert (folder / "out" / "report.html").is_file()
