"""The kubelet of one node: admits pods, runs them through their lives, and reports on them and on the node.

Begin at :mod:`kemu.emulated.kubelet.kubelet`, the actor, which wires the parts together. Each folder imports only from
those below it:

    sync        the lives of pods: start, restart, termination, status; static pods; adoption after a restart
    pressure    the eviction manager and the kernel's OOM killer        node   the Node: status, lease, shutdown, boots
    images      the images of the node: pulls and garbage collection
    probes      startup, readiness and liveness probes      resizes   resizes of running pods in place
    usage       what pods and the machine use over time                 logs   what containers say
    admission   whether the node takes a pod, and which pods a critical pod preempts
    pods        what the kubelet keeps of one pod: its worker, containers, claim, status and mirror
    programs    what commands and images of containers do: a shell in virtual time
    settings    the KubeletConfiguration: which fields act, and what they come to
    notes       what the kubelet keeps on the disk of its machine

The decisions (``admission.predicates``, ``admission.preemption``, ``pods.critical``, ``settings.thresholds``,
``pressure.eviction``, ``pressure.ranking``, ``pressure.oom_scores``) are pure functions without actors or clocks;
:mod:`kemu.lab.conformance` compares them with recorded answers of the real kubelet.

    variants    what a kubelet may be made of instead: the classes of its variants
    devices     devices of pods: drivers and their slices, preparation before containers start
    volumes     volumes of pods on the node: ``managers`` mounts them before containers start
"""
