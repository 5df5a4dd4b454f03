"""A scenario beside the same with a change each: what got better and what got worse, seed by seed.

changes      a remedy: objects and parts of a scenario from files, as overrides of it
comparing    runs all of them with the same seeds; paired differences, and whether a goal is met
"""
