"""The format that users write: ``keys`` (tables of keys by subject), and ``schema``, which joins them and exports the
JSON Schema. What a table is made of stands in :mod:`kemu.emulated.settings`.
"""
