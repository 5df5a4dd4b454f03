"""The plugins in the tree, one module each.

Begin with :mod:`kemu.emulated.scheduler.plugins.in_tree`, the registry, or with a short one,
:mod:`kemu.emulated.scheduler.plugins.node_unschedulable`.
"""
