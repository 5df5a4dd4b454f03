"""What Kubernetes' own code says of the types of its API, each fact once.

``scripts/record facts`` prints the table ``facts.txt``; ``tests/conformance/recorder/facts.go`` says how it is written.
:mod:`.go_types` reads it: for hashes of templates, messages from Go clients, merging and validation.
"""

KUBERNETES = "v1.36.3"
"""The version whose code that was, and that kemu emulates. ``scripts/upgrade`` goes to another."""
