"""What a kubelet is configured with."""
