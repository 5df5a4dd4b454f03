"""The cluster autoscaler, and the provider of machines that it scales.

Role: above the scheduler, whose filters its simulations ask; one actor ``controller/cluster-autoscaler`` and one actor
``cloud``. Begin with ``autoscaler``, whose iteration calls the others in turn.

autoscaler       the actor                                  settings     its flags
clouds           the provider                               providers    the provider as the autoscaler sees it
cluster_states   what it knows of its groups over time      simulator    the cluster as simulations change it
templates        what the next node will be like            estimators   how many nodes pending pods take
expanders        which group grows                          scale_ups    the plan
scale_downs      which nodes no pod needs                   actuators    their removal
taints           its taints on nodes                        pod_rules    rules about single pods
horizontal       the autoscaler of pods, an actor of its own

Mirrors https://github.com/kubernetes/autoscaler, cluster-autoscaler 1.36.
"""
