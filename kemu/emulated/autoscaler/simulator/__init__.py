"""What would happen to pods: the simulations of the autoscaler (`cluster-autoscaler/simulator`).

snapshots      the cluster as the scheduler would see it, changed and changed back
devices        the devices that claims get and give back in them
placements     where pods would go
drainability   which pods keep their node from being removed
"""
