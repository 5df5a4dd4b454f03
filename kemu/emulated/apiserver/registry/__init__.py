"""What a request does to objects. Begin with ``registry`` (writes) and ``reads`` (get and list)."""
