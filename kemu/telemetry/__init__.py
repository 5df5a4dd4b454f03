"""Traces of pods, derived from run-log events.

``spans`` says what a span is; ``builder`` makes spans from events, each part of the cluster's by a module of its own
(``api_events``, ``scheduler_events``, ``kubelet_events``) that writes into ``drafts``; ``otlp`` sends them to a
collector, ``waterfall`` draws the trace of one pod in a terminal. Everything here reads run logs only; no actor knows
of it.
"""
