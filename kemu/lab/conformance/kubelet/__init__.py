"""Recorded decisions of the kubelet."""
