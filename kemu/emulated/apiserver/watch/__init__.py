"""The watch cache (begin with ``cache``), what fills it (``feed``), and who is sent its events (``fanout``).

buffers   how much may wait for clients, and how much may be written to them at a time
"""
