"""The agent of one node: admits pods, runs them through their life, reports on them and on the node."""
