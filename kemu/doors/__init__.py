"""How one comes in: the command line, the Python API, helpers for tests."""
