"""The logs of containers, as ``kubectl logs`` asks for them: begin at ``streams``.

``streams`` picks what was asked for and follows a log; ``lines`` makes up what simulated containers say,
unless their pod says it (``stated``).
"""
