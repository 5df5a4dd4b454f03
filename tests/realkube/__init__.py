"""Real Kubernetes v1.36.3 on loopback, for tests that ask it and kemu the same.

``binaries`` finds the parts (or says which are missing), ``clusters`` starts and stops a kube-apiserver with its etcd,
and the scheduler, the controllers and KWOK beside any API server; ``kubeconfigs`` writes kubeconfigs.

    with clusters.Cluster.start(folder) as cluster:
        cluster.start_controller_manager()
        cluster.start_scheduler()
        cluster.start_kwok()
        cluster.kubectl("get", "nodes")
"""
