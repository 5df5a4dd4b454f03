"""How kemu treats every field that users write. Begin at ``sorts`` and ``tables``; ``refusals`` applies them."""
