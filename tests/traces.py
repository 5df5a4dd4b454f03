"""The openb trace for tests: the published files beside the checkout (``../shared/data``), or a small sample made here.

The sample has the same columns and the same kinds of rows (machines without GPUs, shared GPUs, whole ones, all
classes of service), so every test of the trace runs without the published files, only on fewer rows.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

PUBLISHED = Path(__file__).resolve().parents[2] / "shared" / "data"
NODES, PODS = "openb_node_list_all_node.csv", "openb_pod_list_default.csv"
SAMPLE_NODES, SAMPLE_PODS = 24, 120


def is_whole() -> bool:
    return (PUBLISHED / PODS).is_file()


@cache
def folder() -> Path:
    """Where the two CSV files are."""
    return PUBLISHED if is_whole() else sample()


@cache
def sample() -> Path:
    """The small one, in any case."""
    made = Path(tempfile.mkdtemp(prefix="kemu-openb-sample-"))
    nodes = ["sn,cpu_milli,memory_mib,gpu,model"]
    for number in range(SAMPLE_NODES):
        gpus, model = ((0, ""), (2, "P100"), (8, "V100M16"), (4, "T4"))[number % 4]
        nodes.append(f"openb-node-{number:04},{32000 + 32000 * (number % 3)},262144,{gpus},{model}")
    pods = [
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
    ]
    for number in range(SAMPLE_PODS):
        count, milli = ((0, 0), (1, 460), (1, 1000), (2, 1000), (1, 100))[number % 5]
        spec = "V100M16|P100" if number % 7 == 0 and count else ""
        quality = ("LS", "BE", "Burstable", "Guaranteed")[number % 4]
        created = number * 1000
        times = f"{created},{created + 40_000 + number * 100},{created + 5}"
        pods.append(
            f"openb-pod-{number:04},{2000 + 500 * (number % 9)},4096,{count},{milli},{spec},{quality},Running,{times}"
        )
    (made / NODES).write_text("\n".join(nodes) + "\n")
    (made / PODS).write_text("\n".join(pods) + "\n")
    return made
