"""Checks and detectors of scheduling decisions.

priorities    preemptors outrank their victims; no priority inversion
progress      pods that wait are tried; ``rooms``, where one of them fits
budgets       voluntary evictions respect disruption budgets
ledgers       what disruption budgets had and wanted, and who took from them
waiting       how long pods wait, and whether one starves
unbound       pods that were never bound, and why
loops         evictions and preemptions that repeat without progress
gangs         parts of gangs that hold room
lineages      which pod takes the place of which
caches        the caches of schedulers agree with the store
leaders       the check that only the leader of an election works
"""
