"""The run log: everything that happened in a run, as framed msgpack. Format: docs/runs.md."""
