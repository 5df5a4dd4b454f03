"""The controllers of volumes, one actor each.

``persistent_volumes`` binds claims and volumes; ``csi_drivers`` stands for the CSI drivers, which create, delete,
attach and detach volumes in their time, and with ``resizes`` expand and modify them; ``attachments`` says which volumes
are to be attached to which nodes; ``ephemeral_claims`` makes the claims of ephemeral volumes; ``protections`` keeps
claims and volumes as long as somebody uses them.
"""
