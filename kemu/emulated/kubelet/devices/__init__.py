"""Devices on a node: the drivers, which publish and prepare them, and the kubelet's DRA manager.

drivers        the drivers of one node: they publish ResourceSlices
managers       prepares the claims of a pod before its containers start, and unprepares them when they have ended
checkpoints    which claims are prepared, and for whom: it survives the kubelet
"""
