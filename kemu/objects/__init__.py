"""Kubernetes objects, as every part of kemu understands them.

    resources                            the kinds, their names and keys
    convert, schemas, times              JSON and YAML to messages and back; JSON Schemas
    quantities, requests, qos            amounts, what pods request, quality of service
    selectors, names                     who is selected; the syntax of names and labels
    defaults, validation                 what the API server fills in and what it refuses, with its parts
                                         metadata_, resource_, placement_ and pod_validation and causes
    meta                                 small helpers on metadata

Objects are protobuf messages (``kemu.k8s``) throughout. Nothing here does input or output or knows of actors.
"""
