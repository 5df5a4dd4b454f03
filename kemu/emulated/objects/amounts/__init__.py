"""Amounts of resources: ``quantities``, the ``requests`` of pods, the ``qos`` that follows from them, ``floats``."""
