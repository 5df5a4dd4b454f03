"""kemu for programs: notebooks, tests, scripts. All of it is reached as ``kemu.run``, ``kemu.Run``, … (docs/api.md).

runs         run a scenario; a run to ask questions of
views        what became of a pod, a wait, a finding, as plain data
sources      a scenario from whatever a program has: a file, a name, a text, a dictionary
"""
