"""Recorded syncs of Jobs and CronJobs, and the times that cron expressions mean. Begin with ``questions``.

cron_jobs   recorded courses of a CronJob, repeated with the actor ``controller/cronjob``
jobs        recorded courses of a Job, repeated with the actor ``controller/job``
"""
