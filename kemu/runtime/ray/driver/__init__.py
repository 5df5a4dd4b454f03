"""The driver of a run on Ray. Begin at ``runtime``.

runtime     implements ``runtimes.Runtime``
fleets      starts, tells, watches and replaces all cells; ``cells`` is one of them, ``plans`` who lives where
events      the event streams of the cells; ``logs`` makes one log of them, or of what they have left behind
infrastructure  raylets, GCS and etcd: told of, killed and stopped
clusters    a Ray cluster: started, joined or shared; ``brokers`` is the connection to who speaks with it, ``standing``
            the cluster of ``kemu ray up``
"""
