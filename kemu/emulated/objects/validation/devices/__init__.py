"""The checks of resource.k8s.io. Begin at ``claims``.

claims  the checks of claims, their templates, classes
slices  the checks of ResourceSlices
"""
