"""What carries out tasks in other processes, below ``kemu.lab.exploration.workers``.

worker         the process of a worker on this machine
rays           the same in the processes of a Ray cluster
forks          which of them may fork, and how their children behave; ``pipes``: messages between them
queues         tasks and records in order, for both; ``tasks``: what a task is
"""
