"""One decision: which nodes can take a pod, and which is best. No time passes here; only ``status_updates`` writes.

Begin with :mod:`kemu.emulated.scheduler.cycle.decisions`.

    filtering, diagnoses        what the filters said of all nodes, and the text that users read
    evaluations                 answers kept for each template, updated for the nodes that changed
    verdicts                    filter and answer in one integer; the two passes with nominated pods
    simulations                 the filters asked about a node with pods added or removed
    profiles, half_plugins      which plugins take part where
    line_ups                    the filters and scorers of a profile
    status_updates              conditions, nominations and Events of pods
    batches                     opportunistic batching
    signatures                  signatures of pods: pods of one signature get the same filter results and scores from
    ties                        which of several nodes with the highest score is taken when no lot decides
"""
