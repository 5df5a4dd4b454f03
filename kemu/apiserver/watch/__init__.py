"""The watch cache, what fills it (``feed``), and who is told of its events (``fanout``)."""
