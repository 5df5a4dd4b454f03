"""Real clients: programs with client-go, controller-runtime, Python's and Java's clients, the real parts of Kubernetes.

``go``, ``java`` and ``programs`` hold what users would write; ``recorded`` holds what it sees on a real kube-apiserver
(``recordings`` asks anew). The tests compare that with what it sees on kemu.
"""
