"""The checks of workloads.

apps          the checks of the group apps
batch         the checks of the group batch (``pkg/apis/batch/validation``)
indexes       lists of the indexes of a Job's pods
job_statuses  the checks of the status of a Job
statuses      the checks of the statuses of other workloads: counts
"""
