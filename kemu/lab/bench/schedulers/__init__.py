"""What scheduling costs: decisions by themselves, as something else grows, with the API server, and for a long time.

cliffs      what a decision costs while something grows that the decision is not about
perf_files  scheduler_perf's own configurations, run as they are
soaks       a long run: many pods through one scheduler while everything changes, and what is left of it in memory
"""
