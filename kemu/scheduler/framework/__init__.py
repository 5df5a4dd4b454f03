"""The scheduling framework: extension points, statuses, events. Begin at ``interfaces``."""
