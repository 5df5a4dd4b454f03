"""Recorded cases about volumes: the plugin VolumeBinding over time, and the controller of claims and volumes."""
