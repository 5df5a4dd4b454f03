"""A run as a Perfetto trace: what every node, actor and pod did, on tracks that one can zoom into.

    files       writes the trace; the only module that imports the package ``perfetto``
    lives       slices and flows, from spans: schedulers' cycles, stays on nodes, lives of pods
    levels      counters and what befell nodes and actors, from events: queues, requests, watch lag, faults
    timelines   processes, tracks, slices and samples, and how slices that overlap are laid side by side

Everything comes from the run log. The same log gives the same bytes.
"""
