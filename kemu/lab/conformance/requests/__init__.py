"""Recorded requests over HTTP, and what an API server answers to them.

exchanges   single requests to the gateway, in this process
results     what is compared of an answer
sequences   sequences of requests, answered by the gateway of an emulated cluster
"""
