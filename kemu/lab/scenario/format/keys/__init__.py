"""Tables of keys, by subject: which keys there are, and the shape of what each holds. ``format.schema`` joins them."""
