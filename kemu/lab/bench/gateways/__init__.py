"""What clients of the REST API get: `kemu up` in a process of its own, clients in another.

counts  what one pod of clients costs, counted and not timed
loads   idle watches, clients that list everything, and what a create takes beside them
"""
