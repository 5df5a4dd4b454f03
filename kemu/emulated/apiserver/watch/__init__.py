"""The watch cache (begin with ``cache``), what fills it (``feed``), and who is sent its events (``fanout``)."""
