"""What is asked: ``messages`` has the whole request; ``request_infos`` what its URL says (``paths``, ``queries``);
``negotiation`` and ``bodies`` the rest.

delete_options  the options of deletions, as they stand in bodies
documents   JSON and YAML in bodies that the gateway itself has to read, or spares the API servers
envelopes   the envelope of Kubernetes' protobuf: four bytes, then a ``runtime.Unknown`` with type and message
other_forms requests about objects in another form than the one that is stored
routes      what the routes of an API server take and give
"""
