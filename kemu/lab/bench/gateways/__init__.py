"""What clients of the REST API get: `kemu up` in a process of its own, clients in another; or both in sim, counted.

counts  what a pod costs that clients create and bind
loads   idle watches, clients that list everything, and what a create takes beside them
"""
