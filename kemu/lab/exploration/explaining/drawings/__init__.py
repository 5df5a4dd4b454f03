"""charts, diagrams, svgs."""
