"""Recorded admissions by quotas and limit ranges, and counts of the quota controller."""
