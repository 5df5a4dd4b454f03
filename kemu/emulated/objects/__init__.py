"""Kubernetes objects: their kinds, their JSON, and the rules that several components share.

    resources                       the kinds, with their names, message classes and keys in the store
    conversion                      JSON and YAML to messages and back
    defaults, validation            what the API server fills in, and what it refuses
    fields                          how kemu treats each field: acts, cannot matter, refused
    amounts                         quantities, the requests of pods, QoS classes, 32-bit floats
    selectors, names, host_ports    what selects what, the syntax of names, conflicts of ports
    gpu_cards                       what pods want of shared GPUs, and which cards they have
    meta, pod_phases, times         metadata and conditions, phases, timestamps and durations
    heartbeats                      heartbeats that a kubelet states instead of sending them
    fingerprints                    four-byte digests of nodes and their pods
    key_ranges                      ranges of keys in the store

Objects are protobuf messages (``kemu.k8s``). Nothing here does input or output, or knows of actors. Begin at
``resources``.
"""
