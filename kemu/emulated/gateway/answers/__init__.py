"""What is answered: ``responses`` travel over HTTP, ``representations`` are objects and lists in the form asked for.

documents   documents as JSON text and YAML, and lists of them
texts       objects as JSON text, in one pass over their messages
websockets  the answer 101, and messages over the connection after it
refusals    refusals over HTTP: a ``Status`` in the form that the client asked for
"""
