"""Whom to preempt (``candidates``), and how victims are told (``evictions``)."""
