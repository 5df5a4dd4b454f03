"""Records what a real kube-apiserver answers to the steps of `cases.py`.

    python -m tests.gateway.custom.record KUBECONFIG

Writes tests/gateway/custom/recording.json.gz. KUBECONFIG is of a cluster of the version that kemu emulates, without the
definitions and the namespace of the steps.
"""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import ssl
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx
import yaml

from tests.gateway.custom import cases, player

RECORDING = Path(__file__).with_name("recording.json.gz")


def _client(kubeconfig: str) -> httpx.AsyncClient:
    config = yaml.safe_load(Path(kubeconfig).read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    with tempfile.NamedTemporaryFile() as file:
        for part in ("client-certificate-data", "client-key-data"):
            file.write(base64.b64decode(user[part]))
        file.flush()
        context.load_cert_chain(file.name)
    return httpx.AsyncClient(base_url=cluster["server"], verify=context, timeout=60)


async def record(kubeconfig: str) -> list[dict[str, Any]]:
    async with _client(kubeconfig) as http:
        return await player.play(http, cases.STEPS, pauses=True)


if __name__ == "__main__":
    answers = asyncio.run(record(sys.argv[1]))
    text = json.dumps(answers, ensure_ascii=False, indent=0, sort_keys=True)
    RECORDING.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
