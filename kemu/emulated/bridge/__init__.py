"""The other way round: kemu's API service in front of a real kube-apiserver, so that kemu's actors run against it.

Begin with ``apiservers``, the actor in the place of an API server. ``services`` is the gRPC service that kemu's
clients speak to; ``requests`` says which HTTP request each call is, ``answers`` what comes back; ``watches`` keeps
one watch alive, and ``shared_watches`` shares one among many clients; ``tenants`` lets all clients be a run in a
cluster of others, and ``requested`` tells what they asked; ``patches`` turns kemu's patches in messages into
strategic merge patches. ``connections`` holds the HTTP connection with its credentials and limits, ``rights`` says
what it may do; ``hosting`` runs actors of a process on the wall clock against a cluster.

schedulers   kemu's scheduler as a process beside a real cluster: what ``kemu scheduler`` runs
nodes        kemu's kubelets as nodes of a real cluster: what ``kemu nodes`` runs; ``kubelet_servers`` gives out their
             logs
"""
