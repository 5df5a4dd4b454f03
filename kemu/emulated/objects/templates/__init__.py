"""Hashes of pod templates and the names that are made of them, exactly as Kubernetes computes them.

Kubernetes hashes what its Go structs print, and compares revisions by the JSON that its Go encoder writes. ``dumps``
prints those structs, ``documents`` encodes them, ``hashes`` has the functions that the workload controllers use.

generations   ``spec.templateGeneration`` of former versions of the DaemonSet, which apps/v1 keeps in an annotation
"""
