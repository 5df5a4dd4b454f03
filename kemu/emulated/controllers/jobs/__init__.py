"""Jobs, CronJobs, and Jobs whose time after their end is over. Begin with ``jobs``, then ``job_syncs``.

jobs               the actor ``controller/job``: which Job is synced when
job_syncs          one sync of a Job: its state, its pods, its end
tracking           finalizers and uncounted pods, so that every pod is counted exactly once
gangs              the Workload and the PodGroup of a Job whose pods start together
completion_indexes Indexed Jobs: which index has succeeded, failed, or needs a pod; successPolicy
intervals          sets of indexes as Kubernetes writes them: ``0-2,5``
failure_policies   podFailurePolicy
backoffs           how long a Job waits after failures of its pods
conditions         conditions of Jobs
ttl                the actor ``controller/ttl-after-finished``
cron_jobs          the actor ``controller/cronjob``
cron_times         which runs of a CronJob are due
contexts           what the syncs of the Job controller share: its client and queue
deletion_orders    which of a Job's active pods goes first when there are too many
pod_writes         the pods that a sync of a Job creates, deletes and sets free of their finalizer
"""
