"""Webhooks of clusters in virtual time: it stands while they are asked, and a replay does without them."""

from __future__ import annotations

from pathlib import Path

import httpx

from kemu.lab.scenario.playing.replaying import replays
from tests.admission import cases, recorder, webhook_server
from tests.up import virtual_cluster
