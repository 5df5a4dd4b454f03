"""FGD (Weng et al., USENIX ATC 2023) reproduced: six policies for clusters with shared GPUs on the openb trace.

    python -m experiments.published.fgd --data DIR

Begin with ``__main__``. ``inputs`` finds and reads the published files, ``clusters`` makes the scenario of a run,
``runs`` plays it, ``measures`` computes the published figures from where its pods went, ``results`` keeps them beside
the published ones, ``pages`` writes docs/published-fgd.md. The policies are scheduler plugins: examples/gpus.
"""

import sys
from pathlib import Path

PLUGINS = Path(__file__).resolve().parents[3] / "examples" / "gpus"

# Modules beside a scenario are found by its ``modules``; here they are needed before there is one.
if str(PLUGINS) not in sys.path:
    sys.path.append(str(PLUGINS))
