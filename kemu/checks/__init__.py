"""What a run proved: the history that a run log tells, the checks that always run on it, counters and waiting times.

Reads run logs and objects, never actors.
"""
