"""Groups of pods that are scheduled together: gangs (``schedule_one_podgroup.go`` in ``pkg/scheduler``, KEP-4671).

Only with the feature gate GenericWorkload of a scheduler: its classes take the place of those without groups
(:func:`~kemu.emulated.scheduler.groups.parts.joined`), so that a scheduler without the gate runs none of this.

parts        the cache, the queue and the event handlers of a scheduler that knows groups
attempts     one attempt to find nodes for all members of a group, without any effect
cycles       the cycle of a group: from the queue to the binding cycles of its members, or back
placements   the parts of a cluster in which a group may be placed (TopologyAwareWorkloadScheduling)
preemption   which pods have to leave to make room for a group (WorkloadAwarePreemption)
"""
