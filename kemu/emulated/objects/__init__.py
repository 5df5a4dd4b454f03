"""Kubernetes objects: their kinds, their JSON, and the rules that several components share.

    resources                       the kinds, with their names, message classes and keys in the store
    conversion                      JSON and YAML to messages and back
    defaults, validation            what the API server fills in, and what it refuses
    warnings                        what it tells whoever writes a valid object
    fields                          how kemu treats each field: acts, cannot matter, refused
    amounts                         quantities, the requests of pods, QoS classes, 32-bit floats
    selectors, names                what selects what, the syntax of names
    pods                            fields of pods with a meaning of their own: phases, ports, cards of GPUs
    meta, times                     metadata and conditions, timestamps and durations
    heartbeats                      heartbeats that a kubelet states instead of sending them
    wire                            objects as bytes: envelopes, fingerprints, ranges of keys
    plain                           documents as parsers of JSON and YAML give them: the type ``Json``
    patterns                        regular expressions as Go has them
    caches                          answers about texts that clients choose, bounded in bytes

Objects are protobuf messages (``kemu.messages.k8s``). Nothing here does input or output, or knows of actors. Begin at
``resources``.

    custom_kinds                    custom kinds: what their definitions say of the rows of their versions
    json_paths                      the JSONPath of columns and selectable fields
    kinds                           what is particular to single kinds: autoscalers, component statuses, flow schemas
    cron_expressions                Cron expressions, as CronJobs state them: ``30 2 * * mon-fri``, ``@hourly``
    defaulting                      the defaults of objects: ``defaults`` is the entry, the others hold the kinds
    devices                         what components must agree on about devices
    events                          events in their two forms: that of the core group, which is stored
    facts                           the types of Kubernetes' API, as its own code says: one recorded table
    identities                      who makes a request: the users and groups of Kubernetes behind the actors of a run
    managed_fields                  who manages which fields of an object
    quotas                          what quotas count: read by admission, which charges requests
    statuses                        refusals as the ``metav1.Status`` that clients get
    templates                       hashes of pod templates and the names that are made of them
    volumes                         rules about volumes that schedulers, controllers
"""
