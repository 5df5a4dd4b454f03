"""Recorded decisions of the kubelet.

admissions        recorded admissions of pods, and preemptions for critical pods
eviction_loops    recorded loops of the eviction manager, in which a killed pod frees what it used
eviction_passes   recorded decisions under node pressure: the ranking of pods, and the eviction manager pass by pass
judgements        how decisions of the kubelet and of the node controllers compare with the recorded ones
nodes             one node for recorded cases: the kubelet's pod workers, arrivals and status manager
probings          the prober on containers that start, end and answer by a script, conditions of pods
resizings         resizes of the pods of a node, one after the other: what the allocation manager defers
"""
