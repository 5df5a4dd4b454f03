"""The store: keys with revisions, as etcd keeps them, in one process, with a journal. Begin at ``server``.

    server            the actor: gRPC in, group commit, gRPC out
    watches           the hub: finds watchers by key and prefix, and keeps the slow ones in bounds
    watch_streams     watchers, and the queue of each call of Watch
    watch_responses   responses, put together from events that are serialised once
    operations        what requests to the KV service mean, with etcd's words and errors
    mvcc              revisions, ranges, history, compaction: pure and synchronous
    journal           frames, segments and snapshots on the disk, and recovery from them
    keys              sorted keys, and ranges of them

A module imports only those below it. A real etcd can take the place of all this: ``tests/store/conformance`` asks both
the same questions.

    variants          what the store may be made of instead: the classes of its variants
    settings          the settings of the store
"""
