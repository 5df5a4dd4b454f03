"""The scheduler's cache: nodes, the pods on them, and columns derived from both.

Begin with :mod:`kemu.emulated.scheduler.cache.cluster`; the other modules are its parts.

    nodes, pods       NodeInfo; PodInfo and its Template, compiled once for each distinct spec
    columns           resources and labels as numpy columns, and which rows changed
    counts, terms     pods that match a selector, counted by node; affinity terms compiled
    nominations       the nominator
    indexes           indexes by label: which selectors may match an object, and which pods a selector may match
    updates           what an update of a pod changes, found out once for all schedulers of a process
    pod_groups        which pods belong to which group, and how far they are
    storage           what the scheduler knows about storage: claims, volumes, classes, drivers, attachments
"""
