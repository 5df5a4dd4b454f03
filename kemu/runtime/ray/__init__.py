"""The real runtime: ``driver`` starts and watches cells, a ``cell`` is one process that holds actors."""
