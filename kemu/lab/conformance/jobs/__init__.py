"""Recorded syncs of Jobs and CronJobs, and the times that cron expressions mean. Begin with ``questions``."""
