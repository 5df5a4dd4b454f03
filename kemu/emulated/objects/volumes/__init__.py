"""Rules about volumes that schedulers, controllers, kubelets and the API server share.

``claims``: what claims, volumes and pods say; ``matching``: which volume suits a claim; ``migration``: volumes of
plugins in the tree as their CSI drivers see them; ``expansions``: how far the growth of a claim is.
"""
