"""The cluster autoscaler, and the provider of machines that it scales.

Role: above the scheduler, whose filters its simulations ask; one actor ``controller/cluster-autoscaler`` and one actor
``cloud``. Begin with ``autoscaler``, whose iteration calls the others in turn.

``settings``, its flags; ``clouds``, the provider; ``providers``, the provider as the autoscaler sees it;
``cluster_states``, what it knows of its groups over time; ``snapshots``, the cluster as simulations change it;
``placements``, many pods placed in it; ``templates``, what the next node will be like; ``estimators``, how many it
takes; ``expanders``, of which group; ``scale_ups``, the plan; ``drainability``, which pods keep their node;
``scale_downs``, which nodes nobody needs; ``actuators``, their removal; ``taints`` and ``pod_rules``, rules about single
objects.

Mirrors https://github.com/kubernetes/autoscaler, cluster-autoscaler 1.36.

simulator   what would happen to pods: the simulations of the autoscaler (`cluster-autoscaler/simulator`)
"""
