"""Each safeguard taken away, and the check that breaks without it (docs/ablations.md).

``candidates`` says which check must see the loss and in which scenarios to look for it; ``search`` looks, and writes
``found.json``; ``test_ablations`` runs each find again. None of the scenarios is tuned to a safeguard.
"""
