"""Kubernetes objects, as every part of kemu understands them.

    resources                            the kinds, their names and keys
    convert, times                       JSON and YAML to messages and back (json_readers, json_writers, descriptors)
    quantities, requests, qos            amounts, what pods request, quality of service
    selectors, names                     who is selected; the syntax of names and labels
    defaults, validation                 what the API server fills in and what it refuses, with its parts
                                         metadata_, resource_, placement_ and pod_validation and causes
    meta, pod_phases                     small helpers on metadata, conditions and phases
    heartbeats, fingerprints, floats     heartbeats stated, not sent; objects in four bytes; floats of 32 bits

Objects are protobuf messages (``kemu.k8s``) throughout. Nothing here does input or output or knows of actors.
"""
