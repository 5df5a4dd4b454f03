"""Sessions with containers: exec, attach, port-forward, proxies. Begin at ``requests``.

``requests`` answers the subresources exec, attach and portforward, ``proxies`` answers proxy; ``commands`` speaks the
protocol of exec and attach, ``ports`` that of port-forward, also in ``spdy``. Out of the box ``consoles`` answers, with
the files of ``places``; ``pages`` is what web servers answer.
"""
