"""Checks of what watches deliver.

events        every event comes once, in order, in time, and is true
deliveries    what should have come, computed from the store's changes
"""
