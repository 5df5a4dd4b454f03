"""The history of a run, folded from its log. Checks, expectations and reports read it from here.

histories     the fold: feed it every event in order
disturbances  processes that died, stood still or lagged
outages       when faults may have held back what watches deliver, and for whom
facts         what a history consists of: pods, nodes, faults, changes and facts about them
parsed        objects as the store holds them, parsed once
sessions      the watches that clients tell of
windows       which time of a run is measured
"""

from kemu.lab.checks.history.histories import LOST, MIRROR, NODE_PREFIX, POD_PREFIX, WORKLOAD_LABEL, History

__all__ = ["LOST", "MIRROR", "NODE_PREFIX", "POD_PREFIX", "WORKLOAD_LABEL", "History"]
