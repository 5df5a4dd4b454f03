"""Recorded writes to objects: applies, patches, updates, and the managed fields that come of them."""
