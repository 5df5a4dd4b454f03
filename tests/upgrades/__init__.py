"""From one version of Kubernetes to another: what in the repository follows from Kubernetes' modules is made anew, and
what changes is said. ``scripts/upgrade`` runs it; docs/upgrading.md says what is left to people.

modules      Kubernetes' Go modules, and the recorder's go.mod
protos       the messages of ``proto/kemu/k8s``
recorders    the recorder, built with another version
documents    discovery, schemas, roles, defaults, facts: how two versions differ
decisions    recorded cases, asked again
"""
