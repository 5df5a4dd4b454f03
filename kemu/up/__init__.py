"""``kemu up``: a cluster that real clients talk to. ``virtual`` holds the one whose clock stands until it is asked."""
