"""daemon_histories, daemon_pods, daemon_sets."""
