"""The runtime ``real``: programs beside actors, and what is heard of real components of Kubernetes."""
