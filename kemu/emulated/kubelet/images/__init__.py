"""The images of a node: begin at ``stores``, which holds them.

``pulls`` adds images, ``garbage`` removes them (``pkg/kubelet/images``).
"""
