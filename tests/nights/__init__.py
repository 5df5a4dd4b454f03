"""Nights: what takes too long for every change, step by step, with records that ``docs/nights.md`` is made of."""
