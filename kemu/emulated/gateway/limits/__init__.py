"""What clients may take of the server.

connections  one connection: how long it may take to say something, and how much of it is read
upgrades     a connection that its client has upgraded: bytes in both directions
lanes        lists of many objects, a few at a time
sites        web sites that reach a server without tokens
files        how many connections a process may have
"""
