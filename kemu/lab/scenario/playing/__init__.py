"""Plays a scenario.

``runner`` leaves a run folder; ``plays`` builds the cluster and lets time pass, ``judging`` says what came of it;
``plans`` makes actors from data; ``user``, ``operators`` and ``faults`` carry out what happens (people and programs,
the machines' owner, chaos); ``machines`` come and go with their kubelets; ``heartbeats`` says which are only stated;
``workloads`` draws pods; ``progress`` says how far a run is; ``replaying`` runs a folder
again, and judges a run whose process was killed.

checkpoints      from which a run in virtual time goes on after its process was killed
control_planes   the runtime ``real``: what real components of Kubernetes cannot do, and who starts them
paces            a run at the pace of one who watches it: virtual time that waits for real time
rollouts         what ``kubectl rollout`` does to a workload: restart, undo, pause, resume
triggers         watches a run that goes on for what is to come true in it: ``until``, and ``when`` of faults
"""
