"""The plugins in the tree, one module each; :mod:`kemu.scheduler.plugins.in_tree` lists them."""
