"""Whether a node takes a pod, and which pods a critical one may preempt. Begin at ``arrivals``."""
