"""What clients of the REST API get: `kemu up` in a process of its own, clients in another.

loads   idle watches, clients that list everything, and what a create takes beside them
"""
