"""Tables: what ``kubectl get`` prints. Begin with :mod:`kemu.emulated.gateway.tables.tables`.

One module for each API group, or for several small ones, holds printers: columns, and a function from an object to its
cells. ``texts`` says how ages, labels, selectors and quantities look; ``printers`` what a printer is.

apps           the group apps
autoscaling    the group autoscaling: HorizontalPodAutoscalers, and the subresource scale of workloads
batch          the group batch
core           the other kinds of the core group
networking     the groups networking.k8s.io and discovery.k8s.io
pods           Pods and their templates: ``printPod``, ``printPodTemplate``
small_groups   the groups policy, scheduling.k8s.io, coordination.k8s.io, node.k8s.io, rbac.authorization.k8s.io
storage        the group storage.k8s.io
"""
