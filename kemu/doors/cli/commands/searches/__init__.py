"""Commands that make many runs: searches for those that fail, what makes a failure small, sweeps."""
