"""The format that users write.

``documents`` (YAML with places), ``values`` (notations: durations, rates, shares), ``shapes`` (what a value may look
like), ``keys`` (tables of keys by subject), and ``schema``, which joins them and exports the JSON Schema.
"""
