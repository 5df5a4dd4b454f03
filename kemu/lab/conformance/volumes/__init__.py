"""Recorded cases about volumes: the plugin VolumeBinding over time, and the controller of claims and volumes.

bindings         recorded cases of the plugin VolumeBinding, made again by ``volume_binding``
controllers      recorded cases of the PersistentVolume controller
questions        what recorded cases ask about volumes
storage_worlds   the API server of recorded cases about volumes: objects with versions, and what others do to them
"""
