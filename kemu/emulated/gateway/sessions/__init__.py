"""Sessions with containers: exec, attach, port-forward. Begin at ``requests``.

``requests`` answers the subresources; ``commands`` speaks the protocol of exec and attach over ``websockets``,
``ports`` that of port-forward, over ``websockets`` and ``spdy``. ``handlers`` are functions of users that answer,
``consoles`` what answers out of the box, with the files of ``places``; ``pages`` is what web servers answer to
requests.
"""
