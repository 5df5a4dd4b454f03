"""Recorded admissions by quotas and limit ranges, and counts of the quota controller.

sequences   sequences of requests under quotas and limit ranges
"""
