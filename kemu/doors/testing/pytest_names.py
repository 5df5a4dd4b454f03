"""Names that the pytest plugin and its items share: markers, fixtures, files."""

MARKER = "kemu"
UP_MARKER = "kemu_up"
CLUSTER, RUN = "kemu_cluster", "kemu_run"
"""Fixtures."""
SUFFIX = ".kemu.yaml"
"""Suffix of files that are tests."""
