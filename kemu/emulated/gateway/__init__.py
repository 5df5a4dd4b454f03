"""The Kubernetes REST API in front of the API server actors. Begin with ``app``.

    app          the ASGI application: which request goes where
    asgi         the types by which it and the layers in front of it call each other
    servers      HTTP on a socket: uvicorn in the running event loop, HTTP/1.1 or HTTP/2 as clients choose
    settings     what the gateway is told
    backends     the API servers behind it, and which one a connection sticks to
    custom       kinds that definitions of custom resources make, as the API server behind a connection has them
    streams      watches of clients on streams to API servers
    deliveries   what watches of clients have been sent
    discoveries  groups, kinds, schemas, version; the keys of tokens
    aggregation  API servers of others, to which APIServices lead
    flows        the flow schema of a request
    issuers      who signs: certificates that were asked for, tokens in secrets
    monitoring   health and metrics
    statuses     /statusz
    requests/    what is asked: path, query, media types, body
    answers/     what is answered: objects in JSON, YAML and protobuf, lists, refusals
    verbs/       one module for each group of verbs: from a request to calls of the gRPC service and back

Nothing is decided twice: what Kubernetes decides behind its REST layer (validation, admission, authorization, patches,
selectors) is left to the API servers (:mod:`kemu.emulated.apiserver`).

    authentication  who sends a request over HTTP
    discovery       discovery: which groups, kinds, verbs and subresources there are
    faults          faults that clients of the gateway meet, at chosen moments: refusals, lost and late answers
    handlers        functions of users that answer for containers
    http2           one connection of HTTP/2
    limits          what clients may take of the server
    openapi         OpenAPI v3: the schemas of the kinds that the gateway serves, and the operations on them
    tables          tables: what ``kubectl get`` prints
"""
