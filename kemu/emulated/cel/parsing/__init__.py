"""From the text of an expression to its tree.

parser      the grammar of CEL, with cel-go's limits and messages: begin here
tokens      words, numbers and signs of a text
literals    strings and bytes as they are written in expressions
macros      calls that the parser replaces by comprehensions and other trees
syntax      the nodes of a tree
texts       the text itself: lines, places, and how mistakes are shown
stacks      room for recursion over trees, whose depth the parser bounds
"""
