"""envelopes, fingerprints, key_ranges, shared_objects, wires."""
