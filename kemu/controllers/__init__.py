"""The controllers of the cluster: what they decide, apart from the actors that carry it out."""
