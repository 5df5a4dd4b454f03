"""How actors talk to the API server. Begin with ``clients`` (requests) and ``informers`` (cached views).

``workqueues`` holds what a controller has to do next, ``recorders`` writes Event objects, ``retries`` repeats requests
while the API server is away. Below them, ``sessions`` batches requests and ``watches`` multiplexes watches, each on one
of the ``streams``; ``endpoints`` chooses the API server that both connect to. ``message_labels`` says what messages
in flight are about, for holds and choosers.

drains      draining a node, as ``kubectl drain`` does: cordon it, choose its pods, evict them
limits      how many requests a second a client may send
elections   leader election over a Lease, as client-go does it (``tools/leaderelection`` with a ``LeaseLock``)
volume_drivers   how the simulated CSI drivers behave, as a scenario states it
variants    what clients may be made of instead: the classes of their variants
"""
