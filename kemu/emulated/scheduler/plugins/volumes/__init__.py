"""The plugins for volumes: VolumeRestrictions, NodeVolumeLimits, VolumeBinding (with its ``binders``) and VolumeZone.

They ignore pods without volumes of theirs (:meth:`FilterPlugin.concerns`), which therefore pay nothing for them.
"""
