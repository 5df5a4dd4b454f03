"""Real clusters: what kemu runs beside real components of Kubernetes.

kubelets   the kubelets of a scenario's nodes, or of so many equal ones, for ``kemu nodes``
"""
