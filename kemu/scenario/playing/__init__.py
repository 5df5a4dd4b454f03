"""Plays a scenario.

``runner`` builds the cluster and leaves a run folder; ``plans`` makes actors from data; ``user``, ``operators`` and
``faults`` carry out what happens (people and programs, the machines' owner, chaos); ``machines`` come and go with their
kubelets; ``heartbeats`` says which are only stated; ``workloads`` draws pods; ``replays`` runs a folder again.
"""
