"""Volumes of pods on the node: ``managers`` mounts them before containers start, ``csi_nodes`` says what drivers are
here."""
