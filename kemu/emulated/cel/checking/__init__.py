"""What of a tree is known before it is evaluated.

checker       the type of each node, and the overloads that each call may resolve to, with cel-go's messages
unification   which type may stand for which: cel-go's rules of assignment
validators    mistakes in constants: durations, timestamps, patterns and formats that are none, literals of mixed types
"""
