"""Checks of what controllers decide about pods.

owners        workloads and their pods, as the store has them
shortages     a workload that is short of pods creates them
orders        rollouts keep their limits, StatefulSets go in order
countings     quotas and budgets agree with what there is
views         what controllers had seen when they wrote
surpluses     no workload has pods beyond what it wants, or deletes what it wants
job_counts    Jobs count each pod once
schedules     CronJobs start Jobs as their policy says
collected     what the garbage collectors delete is garbage
"""
