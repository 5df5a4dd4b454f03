"""The controllers of the cluster, one actor each, and what they decide, apart from the actors that carry it out."""
