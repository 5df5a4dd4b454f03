"""drainability, placements, snapshots."""
