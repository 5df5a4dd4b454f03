"""Records what a real kube-apiserver answers to the steps of `cases.py` and `conversions.py`.

    python -m tests.gateway.custom.record KUBECONFIG [cases] [warnings] [conversions]

Writes recording.json.gz, warnings.json.gz and conversions.json.gz beside this file. KUBECONFIG is of a cluster of the
version that kemu emulates, without the definitions and the namespaces of the steps.
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

from tests.admission import webhook_server
from tests.gateway.custom import cases, conversions, converters, player

RECORDINGS = {
    "cases": Path(__file__).with_name("recording.json.gz"),
    "warnings": Path(__file__).with_name("warnings.json.gz"),
    "conversions": Path(__file__).with_name("conversions.json.gz"),
}


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


async def record(kubeconfig: str, what: str) -> list[dict[str, Any]]:
    async with _client(kubeconfig) as http:
        if what != "conversions":
            steps = cases.STEPS if what == "cases" else cases.WARNINGS
            return await player.play(http, steps, pauses=True)
        with webhook_server.serving() as converter:
            converter.reviews.update(converters.RESPONSES)
            converter.more.update(converters.ADMISSION)
            return await player.play(http, conversions.STEPS, pauses=True, converter=converter)


if __name__ == "__main__":
    for what in sys.argv[2:] or RECORDINGS:
        answers = asyncio.run(record(sys.argv[1], what))
        text = json.dumps(answers, ensure_ascii=False, indent=0, sort_keys=True)
        RECORDINGS[what].write_bytes(gzip.compress(text.encode(), 9, mtime=0))
