"""The families of metrics that kemu tells, as the real components v1.36.3 declare them.

Tests compare them with the record of a real control plane (``tests/telemetry/metrics/real.json``).
"""

from __future__ import annotations

from typing import NamedTuple

APISERVER = "kube-apiserver"
SCHEDULER = "kube-scheduler"
CONTROLLERS = "kube-controller-manager"
KUBELET = "kubelet"
STATE = "kube-state-metrics"
COMPONENTS = (APISERVER, SCHEDULER, CONTROLLERS, KUBELET, STATE)

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"


class Family(NamedTuple):
    name: str
    type: str
    labels: tuple[str, ...]
    """In the order of the alphabet, as Go's client prints them."""
    help: str
    component: str
    buckets: tuple[float, ...] = ()


def _powers(first: float, factor: float, count: int) -> tuple[float, ...]:
    """Upper bounds of buckets as Go computes them (``ExponentialBuckets``)."""
    found = []
    for _ in range(count):
        found.append(first)
        first *= factor
    return tuple(found)


_REQUEST = (
    0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 20.0, 30.0,
    45.0, 60.0,
)  # fmt: skip
_ATTEMPT = _powers(0.001, 2, 15)
_QUEUE = _powers(1e-8, 10, 10)
_FLOW = ("flow_schema", "priority_level")
_POD = ("namespace", "pod", "uid")
_CONTAINER = ("container", *_POD)


def _state(name: str, labels: tuple[str, ...], text: str, kind: str = GAUGE) -> Family:
    return Family(name, kind, tuple(sorted(labels)), text, STATE)


_ALL = (
    Family(
        "apiserver_request_total", COUNTER,
        ("code", "component", "dry_run", "group", "resource", "scope", "subresource", "verb", "version"),
        "Requests that were answered.", APISERVER,
    ),
    Family(
        "apiserver_request_duration_seconds", HISTOGRAM,
        ("component", "dry_run", "group", "resource", "scope", "subresource", "verb", "version"),
        "How long requests took, but for watches.", APISERVER, _REQUEST,
    ),
    Family(
        "apiserver_current_inflight_requests", GAUGE, ("request_kind",),
        "The most requests that were under way at once in the last second.", APISERVER,
    ),
    Family(
        "apiserver_longrunning_requests", GAUGE,
        ("component", "group", "resource", "scope", "subresource", "verb", "version"),
        "Watches that are open.", APISERVER,
    ),
    Family(
        "apiserver_watch_events_total", COUNTER, ("group", "resource", "version"), "Events that watches brought.",
        APISERVER,
    ),
    Family("apiserver_storage_objects", GAUGE, ("resource",), "Objects in the store.", APISERVER),
    Family(
        "apiserver_flowcontrol_nominal_limit_seats", GAUGE, ("priority_level",), "Seats of a priority level.",
        APISERVER,
    ),
    Family(
        "apiserver_flowcontrol_lower_limit_seats", GAUGE, ("priority_level",),
        "Seats that a priority level keeps for itself.", APISERVER,
    ),
    Family(
        "apiserver_flowcontrol_upper_limit_seats", GAUGE, ("priority_level",),
        "Seats of a priority level with all that it may borrow.", APISERVER,
    ),
    Family(
        "apiserver_flowcontrol_current_limit_seats", GAUGE, ("priority_level",),
        "Seats of a priority level as levels lend to each other now.", APISERVER,
    ),
    Family(
        "apiserver_flowcontrol_dispatched_requests_total", COUNTER, _FLOW, "Requests that got their seats.", APISERVER,
    ),
    Family(
        "apiserver_flowcontrol_rejected_requests_total", COUNTER, (*_FLOW, "reason"),
        "Requests that were refused with 429.", APISERVER,
    ),
    Family("apiserver_flowcontrol_current_executing_requests", GAUGE, _FLOW, "Requests that are served.", APISERVER),
    Family("apiserver_flowcontrol_current_executing_seats", GAUGE, _FLOW, "Seats that are taken.", APISERVER),
    Family("apiserver_flowcontrol_current_inqueue_requests", GAUGE, _FLOW, "Requests that wait.", APISERVER),
    Family("apiserver_flowcontrol_current_inqueue_seats", GAUGE, _FLOW, "Seats that are waited for.", APISERVER),
    Family("process_cpu_seconds_total", COUNTER, (), "CPU time of the process: all of kemu.", APISERVER),
    Family("process_resident_memory_bytes", GAUGE, (), "Memory of the process: all of kemu.", APISERVER),
    Family(
        "scheduler_pending_pods", GAUGE, ("queue",), "Pods that wait, by the part of the queue.", SCHEDULER,
    ),
    Family(
        "scheduler_schedule_attempts_total", COUNTER, ("profile", "result"), "Attempts to schedule a pod.", SCHEDULER,
    ),
    Family(
        "scheduler_scheduling_attempt_duration_seconds", HISTOGRAM, ("profile", "result"),
        "How long attempts took, with the binding.", SCHEDULER, _ATTEMPT,
    ),
    Family(
        "scheduler_pod_scheduling_sli_duration_seconds", HISTOGRAM, ("attempts",),
        "From the first attempt until a pod was bound.", SCHEDULER, _powers(0.01, 2, 20),
    ),
    Family(
        "scheduler_pod_scheduling_attempts", HISTOGRAM, (), "Attempts until a pod was bound.", SCHEDULER,
        _powers(1, 2, 5),
    ),
    Family("scheduler_preemption_attempts_total", COUNTER, (), "Searches for pods to preempt.", SCHEDULER),
    Family(
        "scheduler_preemption_victims", HISTOGRAM, (), "Victims of a preemption.", SCHEDULER, _powers(1, 2, 7),
    ),
    Family(
        "scheduler_queue_incoming_pods_total", COUNTER, ("event", "queue"), "Pods that came into a part of the queue.",
        SCHEDULER,
    ),
    Family(
        "scheduler_unschedulable_pods", GAUGE, ("plugin", "profile"), "Pods that wait because a plugin rejected them.",
        SCHEDULER,
    ),
    Family("scheduler_cache_size", GAUGE, ("type",), "Nodes, pods and assumed pods in the cache.", SCHEDULER),
    Family("workqueue_depth", GAUGE, ("name",), "Items that wait to be worked on.", CONTROLLERS),
    Family("workqueue_adds_total", COUNTER, ("name",), "Items that were added.", CONTROLLERS),
    Family("workqueue_retries_total", COUNTER, ("name",), "Items that were added again after a failure.", CONTROLLERS),
    Family(
        "workqueue_queue_duration_seconds", HISTOGRAM, ("name",), "How long items waited.", CONTROLLERS, _QUEUE,
    ),
    Family(
        "workqueue_work_duration_seconds", HISTOGRAM, ("name",), "How long items were worked on.", CONTROLLERS, _QUEUE,
    ),
    Family("node_collector_evictions_total", COUNTER, ("zone",), "Nodes that were tainted NoExecute.", CONTROLLERS),
    Family("node_collector_zone_size", GAUGE, ("zone",), "Nodes of a zone.", CONTROLLERS),
    Family("node_collector_zone_health", GAUGE, ("zone",), "Healthy nodes of a zone, in per cent.", CONTROLLERS),
    Family("node_collector_unhealthy_nodes_in_zone", GAUGE, ("zone",), "Nodes that are not ready.", CONTROLLERS),
    Family("taint_eviction_controller_pod_deletions_total", COUNTER, (), "Pods deleted for a taint.", CONTROLLERS),
    Family("kubelet_running_pods", GAUGE, (), "Pods that run.", KUBELET),
    Family("kubelet_started_pods_total", COUNTER, (), "Pods that were started.", KUBELET),
    Family("kubelet_evictions", COUNTER, ("eviction_signal",), "Pods that were evicted.", KUBELET),
    Family("kubelet_node_name", GAUGE, ("node",), "The name of the node; always 1.", KUBELET),
    _state("kube_node_status_condition", ("node", "condition", "status"), "Conditions of a node."),
    _state("kube_node_spec_unschedulable", ("node",), "Whether a node is cordoned."),
    _state("kube_node_spec_taint", ("node", "key", "value", "effect"), "Taints of a node."),
    _state("kube_node_status_allocatable", ("node", "resource", "unit"), "What pods may have of a node."),
    _state("kube_node_status_capacity", ("node", "resource", "unit"), "What a node has."),
    _state(
        "kube_pod_info",
        (*_POD, "host_ip", "pod_ip", "node", "created_by_kind", "created_by_name", "priority_class", "host_network"),
        "About a pod.",
    ),
    _state("kube_pod_status_phase", (*_POD, "phase"), "The phase of a pod."),
    _state("kube_pod_status_ready", (*_POD, "condition"), "Whether a pod is ready."),
    _state("kube_pod_status_unschedulable", _POD, "A pod that the scheduler found no node for."),
    _state("kube_pod_container_status_restarts_total", _CONTAINER, "Restarts of a container.", COUNTER),
    _state("kube_pod_container_status_waiting_reason", (*_CONTAINER, "reason"), "Why a container waits."),
    _state("kube_pod_container_resource_requests", (*_CONTAINER, "node", "resource", "unit"), "What it requests."),
    _state("kube_deployment_spec_replicas", ("namespace", "deployment"), "Replicas that are wanted."),
    _state("kube_deployment_status_replicas", ("namespace", "deployment"), "Replicas that there are."),
    _state("kube_deployment_status_replicas_available", ("namespace", "deployment"), "Replicas that are available."),
    _state("kube_deployment_status_replicas_unavailable", ("namespace", "deployment"), "Replicas that are not."),
    _state("kube_deployment_status_replicas_updated", ("namespace", "deployment"), "Replicas of the newest template."),
    _state("kube_deployment_metadata_generation", ("namespace", "deployment"), "The generation that is wanted."),
    _state("kube_deployment_status_observed_generation", ("namespace", "deployment"), "The generation that was seen."),
    _state("kube_replicaset_spec_replicas", ("namespace", "replicaset"), "Replicas that are wanted."),
    _state("kube_replicaset_status_ready_replicas", ("namespace", "replicaset"), "Replicas that are ready."),
    _state("kube_statefulset_replicas", ("namespace", "statefulset"), "Replicas that are wanted."),
    _state("kube_statefulset_status_replicas_ready", ("namespace", "statefulset"), "Replicas that are ready."),
    _state(
        "kube_daemonset_status_desired_number_scheduled", ("namespace", "daemonset"), "Nodes that should have a pod.",
    ),
    _state("kube_daemonset_status_number_ready", ("namespace", "daemonset"), "Nodes with a pod that is ready."),
    _state("kube_poddisruptionbudget_status_current_healthy", ("namespace", "poddisruptionbudget"), "Healthy pods."),
    _state("kube_poddisruptionbudget_status_desired_healthy", ("namespace", "poddisruptionbudget"), "The least."),
    _state(
        "kube_poddisruptionbudget_status_pod_disruptions_allowed", ("namespace", "poddisruptionbudget"),
        "How many pods may be evicted now.",
    ),
)  # fmt: skip

FAMILIES = {one.name: one for one in _ALL}
UP = Family("up", GAUGE, (), "Whether the component answers; Prometheus tells it of each target.", "")
