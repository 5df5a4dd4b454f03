"""Extenders: the scheduler's side (``clients``), the other side (``servers``), one that comes with kemu (``gpus``)."""
