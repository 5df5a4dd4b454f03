"""Probes of containers: begin at ``probers``, the probes of all pods of one kubelet.

``workers`` is the worker of one probe, ``answers`` what the container answers it, from the pod's annotation,
``commands`` what comes of a command that a probe runs in it, and ``handlers`` the texts that a failed exec, HTTP, TCP
or gRPC probe leaves in events.
"""
