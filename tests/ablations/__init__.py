"""Each safeguard taken away, and the check that breaks without it (docs/ablations.md).

``candidates`` says which check must see the loss and in which scenarios to look for it. ``search`` looks by seeds,
``exploring`` by exploration; what they find is in ``found.json`` and ``minimal``, and ``test_ablations`` runs it again.
None of the scenarios is tuned to a safeguard.
"""
