"""What is asked: ``messages`` has the whole request; ``paths``, ``queries``, ``negotiation``, ``bodies`` its parts."""
