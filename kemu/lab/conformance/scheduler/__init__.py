"""Recorded decisions and timelines of the kube-scheduler."""
