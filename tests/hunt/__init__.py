"""Hunts for bugs in controllers."""
