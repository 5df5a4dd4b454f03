"""What an API server does by itself, without being asked.

definitions  definitions of custom kinds: names, conditions, the end of all objects
expiry       removes Event objects after their time
measured     logs each request that was answered, where metrics are asked for
service_ranges   the ranges of Services' addresses: the one that is configured, and addresses that are nobody's
"""
