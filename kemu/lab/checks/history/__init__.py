"""The history of a run, folded from its log. Checks, expectations and reports read it from here.

histories       the fold: feed it every event in order
custom_objects  what became of custom objects
claims          who holds which device, and who waits for one
disturbances    processes that died, stood still or lagged
outages         when faults may have held back what watches deliver, and for whom
facts           what a history consists of: pods, nodes, faults and facts about them
parsed          objects as the store holds them, parsed once
sessions        the watches and acknowledged writes that clients tell of
stores          the changes of the store: what every key held, and when
windows         which time of a run is measured
"""

from kemu.lab.checks.history.histories import LOST, MIRROR, WORKLOAD_LABEL, History
from kemu.lab.checks.history.stores import DEFINITION, NODE_PREFIX, PHASE, POD_PREFIX, STATUS

__all__ = [
    "DEFINITION",
    "LOST",
    "MIRROR",
    "NODE_PREFIX",
    "PHASE",
    "POD_PREFIX",
    "STATUS",
    "WORKLOAD_LABEL",
    "History",
]
