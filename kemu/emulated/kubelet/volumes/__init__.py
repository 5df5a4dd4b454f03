"""Volumes of pods on the node: ``managers`` mounts them before containers start, ``references`` says whether what they
name is there, ``csi_nodes`` what drivers are here."""
