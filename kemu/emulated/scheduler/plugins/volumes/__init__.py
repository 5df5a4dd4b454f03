"""The plugins for volumes: VolumeRestrictions, NodeVolumeLimits, VolumeBinding (with its ``binders``) and VolumeZone.

They ignore pods without volumes of theirs (:meth:`FilterPlugin.concerns`), which therefore pay nothing for them.

hints                 queueing hints that several plugins for volumes give
node_volume_limits    NodeVolumeLimits: a node takes only so many volumes of a driver as its CSINode says
volume_binding        VolumeBinding: a pod goes where its volumes are, or where they can be bound or created
volume_restrictions   VolumeRestrictions: disks that two pods of a node must not share
volume_zones          VolumeZone: zones and regions in the labels of bound volumes must be those of the node
"""
