"""Traces of pods, derived from the events of a run log. Begin at ``builder``.

    otlp              sends spans to a collector; ``exports`` is what comes of that
    waterfall         draws the trace of one pod in a terminal
    perfetto          the whole run as a trace for Perfetto
    metrics           a run in the metrics of the real components, for Prometheus
    indexes           where in a run log the events of each pod stand, so that its trace need not read all of it
    builder           makes spans from events, one by one
    api_events scheduler_events kubelet_events      what each part of the cluster's events mean for spans
    drafts            what is remembered of each pod until its spans can end
    spans             what a span is, and how its id follows from what it stands for

Everything here reads run logs only; no actor knows of it.

    api_calls         calls of the API as OpenTelemetry has them: a span of the client
    fault_events      which faults struck whom, for the spans of those actors and the roots of their pods
    runs              what tells the traces of one run from those of others
"""
