"""The scheduler: framework, plugins, queue, preemption and the actor that runs them.

Begin with :mod:`kemu.emulated.scheduler.loop`, and follow a pod from the queue to its binding: ``loop`` →
``scheduling_cycles`` → ``binding_cycles``, with ``failures`` where either cycle fails. How a node is chosen, without
time and without writes, is in :mod:`kemu.emulated.scheduler.cycle.decisions`; what a plugin is, in
:mod:`kemu.emulated.scheduler.framework.interfaces`.

    scheduler         the actor: informers, client, Engine
    loop              the Engine: makes the parts, takes one pod at a time
    feeds             what the watches show, told to cache and queue (``eventhandlers.go``)
    audits            the cache in the run log, for the check ``cache-agrees-with-store``
    consistency       the cache compared with one built anew, for long runs

    cycle/            one decision: filters, scores, choice; profiles; status writes
    queue/            where pods wait, and which events requeue them
    preemption/       victims: which ones, and their eviction
    plugins/          the plugins in the tree
    groups/           pods that are scheduled together: their queue, cycle, placements and preemption
    devices/          claims, pools and the allocator of dynamic resource allocation
    extenders/        processes that are asked, from both sides
    framework/        extension points, events, statuses, results
    cache/            nodes and pods, and the columns derived from them
    configuration/    KubeSchedulerConfiguration and the cost model
    experiments/      switches for alternatives to what Kubernetes does

    variants          what a scheduler may be made of instead: the classes of its variants
"""
