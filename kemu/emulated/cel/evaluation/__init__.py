"""From a checked tree to closures, which evaluate it and count what that costs.

plans        the closures of all kinds of nodes: begin here
attributes   a value and the fields, keys and indexes that are applied to it
calls        which implementation computes a call, what types it admits, what it costs
runs         one evaluation: its limit, its cost so far, the values of names
access       fields, keys and indexes of values, and objects that expressions construct
patterns     regular expressions as Go has them
"""
