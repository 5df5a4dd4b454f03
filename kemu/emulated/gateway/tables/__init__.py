"""Tables: what ``kubectl get`` prints. Begin with :mod:`kemu.emulated.gateway.tables.tables`.

cells          cells that Kubernetes computes
columns        what a column is, and the columns that several kinds have
custom         the columns of custom resources
pods           rows of pods: ``printPod``
printers       the columns of each kind, with the fields or functions that their cells come from
tables         columns and rows of Tables
texts          how ages, labels, selectors and quantities look
"""
