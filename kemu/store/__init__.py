"""The store: keys with revisions, as etcd keeps them, in one process, journaled.

    server        the actor: gRPC in, group commit, gRPC out
    watches       watchers by key and prefix, and the streams that carry their events
    requests      what requests to the KV service mean, in etcd's words and errors
    mvcc          revisions, ranges, history, compaction: pure and synchronous
    journal       frames, segments and snapshots on the disk, and recovery from them
    keys          sorted keys, and ranges of them

A lower module knows nothing of those above it. A real etcd can take the place of all this: ``tests/store/conformance``
asks both the same.
"""
