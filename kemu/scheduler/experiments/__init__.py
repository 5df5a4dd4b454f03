"""Alternatives of the design documents, as switches (``switches``) beside today's behaviour."""
