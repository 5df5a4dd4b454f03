"""The API server: Kubernetes objects over the etcd API. Begin with ``verbs`` and ``registry/registry``.

    server       the actor: wires the modules below
    service      what arrives: unary calls, Session and Watch streams
    flows        how many requests are served at the same time, and who waits
    fairness/    the same of a cluster with FlowSchemas: priority levels, queues, lending
    verbs        one request: carried out, and noted in the run log
    registry/    what a request does
        registry     create, update, patch, delete, bind
        evictions    a delete that asks the disruption budget first
        reads        get and list, from the store or from the watch cache
        patching     merge patch, JSON patch and strategic merge patch
        strategies   the rules of each kind, as a table
        capacity     an experiment: bindings that a node has no room for are refused
        turns        writes to one object, one after the other
    admission/   plugins that may change or refuse an object on its way in
    custom/      custom kinds: their schemas in use, conversion by webhooks, the Scale of their objects
    watch/       the watch cache
        feed         the watch on the store that fills it
        cache        all objects by index, and a window of past events
        fanout       who is sent an event
    faults       what goes wrong on demand: stale reads, watches that end, overload
    housekeeping/  what it does by itself: definitions of custom kinds, Events after their time
    selections   what a list or watch selects, and which index serves it
    storage      the part of the etcd API that an API server needs
    connections  the connection to the store, where it is down: calls wait for it
    deadlines    how long the store may take to answer
    errors       refusals, in Kubernetes' words
    webhooks     the client that asks webhooks

The server keeps no state of its own: several may run against one store, each with its own, perhaps stale, watch cache.

    authorization  who may do what: the authorization modes Node and RBAC, as kubeadm sets them up
    dry_runs       requests with ``dryRun: All``: everything happens but the write
    request_warnings  what an answer tells its client beside the object
    lives          how pods live whose objects do not say
    variants       what an API server may be made of instead: the classes of its variants
    settings       the settings of the API servers
"""
