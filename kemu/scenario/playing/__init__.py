"""Plays a scenario: from data to actors, users, operators and chaos. Begin at ``runner``."""
