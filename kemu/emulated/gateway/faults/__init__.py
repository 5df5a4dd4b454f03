"""Faults that clients of the gateway meet, at chosen moments: refusals, lost and late answers, answers from the past,
watches that end, that come late, or that lack their bookmarks.

``layer`` stands in front of the gateway, as an ASGI application around it; ``rules`` say which requests a fault
strikes, ``requests`` what a request is to them; ``refusals`` and ``streams`` carry the faults out; ``revisions``
remember when a revision was the newest one, and ``past`` answers as of it. The kinds themselves are in
:mod:`kemu.runtime.faults.kinds`.
"""
