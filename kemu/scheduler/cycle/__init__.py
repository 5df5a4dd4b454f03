"""The scheduling cycle: profiles, filtering, scoring, decisions. Begin at ``decisions``."""
