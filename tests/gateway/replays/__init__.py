"""Exchanges recorded between real clients and a real kube-apiserver, replayed against kemu's gateway.

    python -m tests.gateway.replays [--client kubectl] [--step TEXT] [--messages] [--all]

sends every recorded request, in order, to one gateway in this process, and compares each answer with the recorded one:
status, reason, details, Content-Type, the set of JSON keys, columns of Tables, types of watch events.

    recordings     the file, record by record, in the order of the requests
    wires          bodies: JSON, protobuf, truncated ones
    shapes         what of two answers has to be alike
    identities     UIDs and resource versions of the recording, and what they are here
    states         brings the gateway's objects into the state that a recorded exchange presupposes
    applications   requests to an ASGI application without sockets, streams included
    replays        plays all of it
    differences    which differences are left, each argued in ``differences.yaml``
"""
