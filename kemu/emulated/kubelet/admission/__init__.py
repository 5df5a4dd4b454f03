"""Whether a node takes a pod, and which pods a critical one preempts: begin at ``arrivals``.

``predicates`` has the checks (``pkg/kubelet/lifecycle``), ``preemption`` chooses victims (``pkg/kubelet/preemption``),
``devices`` knows which GPU cards are taken (``pkg/kubelet/cm/devicemanager``).
"""
