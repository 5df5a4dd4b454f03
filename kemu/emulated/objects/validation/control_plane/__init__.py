"""The checks of kinds about the control plane itself.

flowcontrol     flowcontrol.apiserver.k8s.io: flow schemas, priority levels
registrations   apiregistration.k8s.io and certificates.k8s.io
"""
