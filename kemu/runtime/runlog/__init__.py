"""The run log: everything that happened in a run, as framed msgpack; and the run folder. Format: docs/runs.md."""
