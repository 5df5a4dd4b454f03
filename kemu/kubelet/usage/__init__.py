"""What pods and machines use over time."""
