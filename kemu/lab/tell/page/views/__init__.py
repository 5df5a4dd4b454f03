"""The views of the page, one module each: what it keeps of the run log, and its data. Begin at ``view``.

pods, nodes    what became of each; other views refer to them
events         the events that sentences link to; ``stories``, those sentences
queues         how many pods were in which part of a scheduler's queue
attempts       every scheduling attempt, and what would have had to change; ``shortages``, what was missing where
traces         each pod's waterfall
preemptions    who pushed out whom
watches        how late each client heard of changes
budgets        how many pods disruption budgets lack
classes        the names of priorities
"""
