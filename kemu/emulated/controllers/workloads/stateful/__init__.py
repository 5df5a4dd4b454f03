"""stateful_claims, stateful_pods, stateful_sets."""
