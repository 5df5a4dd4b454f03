"""A run in the metrics of the real components: what kube-apiserver, kube-scheduler, kube-controller-manager, kubelets
and kube-state-metrics would tell Prometheus of it.

folds      a run log, event by event, into values (:mod:`kemu.runtime.metrics`)
queues     where the pods of a scheduler wait
objects    what kube-state-metrics tells of the objects that there are
files      a whole run in OpenMetrics, with its own times
rules      which alerts would have fired in it, judged by Prometheus

Everything is told by the run log. Requests and work queues are in it where the scenario says ``metrics: true``.
"""
