"""What a run proved: the history that a run log tells, the checks that always run on it, counters and waiting times.

``history`` is folded from the log; ``registry`` lists the checks of all other modules, whose results have the shape of
``results``. Reads run logs and objects, never actors.
"""
