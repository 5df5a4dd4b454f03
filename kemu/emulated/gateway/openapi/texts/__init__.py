"""Sentences for ``kubectl explain``."""
