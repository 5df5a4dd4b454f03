"""Real clients: programs with client-go, controller-runtime and the Python clients, and the real parts of Kubernetes.

``go`` and ``programs`` hold what users would write; ``recorded`` holds what it sees on a real kube-apiserver
(``recordings`` asks anew). The tests compare that with what it sees on kemu.
"""
