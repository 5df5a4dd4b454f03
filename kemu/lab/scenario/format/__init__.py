"""The format that users write, declared by subject in dataclasses that the rest of the code uses, with the shapes of
:mod:`kemu.emulated.settings`.

schema      joins all of it, and exports the JSON Schema
clusters    nodes, schedulers, extenders
events      what users and operators do at a time
holds       messages that are kept back
users       as whom events may be done
workloads   streams of pods: when they come, how long they live
traces      which files a recorded trace is read from, and which columns say what
keys        tables of keys of what is not declared in a dataclass
"""
