"""Amounts of resources: ``quantities``, the ``requests`` of pods, the ``qos`` that follows from them, ``floats``.

pod_totals       what a pod requests, and what its limits are
resource_lists   amounts of several resources, exactly and with their formats
"""
