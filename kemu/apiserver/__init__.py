"""The API server: Kubernetes objects over the etcd API.

    service      what arrives: unary calls, Session and Watch streams
    requests     one request, carried out and noted in the run log
    registry     what a request does: create, update, patch, delete, bind (evictions, capacity: what is asked before)
    reads        get and list, from the store or from the cache
    strategies   what is particular to a kind: a table
    turns        writes to one object, one after the other
    admission/   what may change or refuse an object on its way in
    patches      merge patch and strategic merge patch
    cache        the watch cache: all objects by index, and a window of past events
    feed         the watch on the store that fills the cache
    expiry       Event objects do not live for ever
    fanout       who is told of an event
    selections   what a list or watch selects, and which index serves it
    storage      the etcd API, as far as it is needed
    errors       refusals, in Kubernetes' words
    server       the actor: wires the above

It keeps no state of its own: several may run against one store, each with its own, perhaps stale, watch cache.
"""
