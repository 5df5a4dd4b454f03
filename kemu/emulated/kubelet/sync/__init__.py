"""The lives of pods on a node: begin at ``pod_workers``.

``pod_workers`` moves each pod from its arrival to the end of its containers. ``starts`` pulls images, starts and
restarts containers (``image_volumes``: volumes that are images), ``ephemeral`` starts those that are added,
``terminations`` stops them, ``adoptions`` takes over what an earlier kubelet started.
``status_managers`` writes statuses to the API server, ``life_events`` events about all of this, ``static_pods`` runs
manifests of the kubelet's own.
Counterparts: ``pod_workers.go``, ``kuberuntime``, ``status`` and ``config`` of ``pkg/kubelet``.
"""
