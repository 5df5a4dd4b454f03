"""A controller in Go that lives by requeues, built as examples/clock says."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kemu.lab.hunt import projects
from kemu.lab.hunt.running.trials import Trial

EXAMPLES = Path(__file__).parents[2] / "examples/clock"
SOURCE = r"""package main

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"
)

func main() {
	config, _ := os.ReadFile(os.Getenv("KUBECONFIG"))
	words := map[string]string{}
	for _, line := range strings.Split(string(config), "\n") {
		if fields := strings.Fields(line); len(fields) == 2 {
			words[fields[0]] = fields[1]
		}
	}
	client := &http.Client{
		Timeout:   30 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
	}
	write := func(key string, value interface{}) {
		body := strings.NewReader(fmt.Sprintf(`{"data":{"%s":"%v"}}`, key, value))
		request, _ := http.NewRequest("PATCH", words["server:"]+"/api/v1/namespaces/default/configmaps/a", body)
		request.Header.Set("Authorization", "Bearer "+words["token:"])
		request.Header.Set("Content-Type", "application/merge-patch+json")
		if answer, err := client.Do(request); err == nil {
			answer.Body.Close()
		}
	}
	time.Sleep(100 * time.Millisecond) // before it is ready, in real time
	begun := time.Now()
	seconds := func() int { return int(time.Since(begun).Round(time.Second) / time.Second) }
	stopped := time.AfterFunc(3*time.Second, func() { write("stopped", seconds()) })
	fmt.Println("ready")
	ticker := time.NewTicker(20 * time.Second)
	stopped.Stop()
	time.Sleep(10 * time.Second)
	write("slept", seconds())
	<-ticker.C
	write("first", seconds())
	<-ticker.C
	write("second", seconds())
	timer := time.NewTimer(time.Hour)
	timer.Reset(5 * time.Second)
	<-timer.C
	write("timer", seconds())
	select {}
}
"""
HUNT = """apiVersion: kemu.dev/v1
kind: Hunt
metadata: {name: timers}
spec:
  controllers: [{name: go, command: [./controller], ready: {log: ready}}]
  rest: 0s
  steps:
    - apply: {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}
    - {until: {object: {kind: ConfigMap, name: a}, field: data.timer, equals: "45"}, within: 2m}
"""


@pytest.mark.thorough
@pytest.mark.slow
def test_requeues_come_about(tmp_path: Path) -> None:
    if shutil.which("go") is None:
        pytest.skip("not beside the project: Go")
    overlay = subprocess.run(
        [sys.executable, EXAMPLES / "go_overlay.py", tmp_path / "clock"], check=True, capture_output=True, text=True
    ).stdout.strip()
    (tmp_path / "main.go").write_text(SOURCE)
    # Timers of before Go 1.23, which old controllers have.
    (tmp_path / "go.mod").write_text("module controller\n\ngo 1.13\n")
    subprocess.run(["go", "build", "-p", "1", "-overlay", overlay, "-o", "controller"], cwd=tmp_path, check=True)
    (tmp_path / "hunt.yaml").write_text(HUNT)
    project = projects.load(tmp_path / "hunt.yaml")
    (tmp_path / "run").mkdir()
    outcome = Trial(project, tmp_path / "run", project.steps).run()
    assert (outcome.stuck, outcome.crashes) == ([], {})
    (found,) = [one for one in outcome.objects().values() if one["metadata"]["name"] == "a"]
    assert found["data"] == {"slept": "10", "first": "20", "second": "40", "timer": "45"}
