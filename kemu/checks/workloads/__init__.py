"""Checks of what controllers decide about pods.

owners        workloads and their pods, as the store has them
shortages     a workload that is short of pods creates them
orders        rollouts keep their limits, StatefulSets go in order
countings     quotas and budgets agree with what there is
"""
