"""Traces of pods, derived from run-log events.

``spans`` says what a span is, ``builder`` makes spans from events, ``otlp`` sends them to a collector, ``waterfall``
draws the trace of one pod in a terminal. Everything here reads run logs only; no actor knows of it.
"""
