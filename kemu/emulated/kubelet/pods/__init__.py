"""What the kubelet keeps of one pod: begin at ``workers``.

``workers`` has the state of a pod, ``containers`` that of each container, ``claims`` what the pod takes from its node,
``statuses`` the status that the kubelet writes, ``sandboxes`` what a container runtime and a network would add to it,
``mirrors`` the mirror of a static pod. ``lives`` reads the annotations that stand for real containers; ``critical``
says which pods are critical.
"""
