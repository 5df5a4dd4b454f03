"""The checks of workloads.

apps    the checks of the group apps
batch   the checks of the group batch (``pkg/apis/batch/validation``)
"""
