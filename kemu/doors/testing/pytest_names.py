"""Names that the pytest plugin and its items share: markers, fixtures, files."""

MARKER = "kemu"
UP_MARKER = "kemu_up"
CLUSTER, RUN, CLUSTER_UP = "kemu_cluster", "kemu_run", "kemu_up"
"""Fixtures."""
SUFFIX = ".kemu.yaml"
"""Suffix of files that are tests."""
