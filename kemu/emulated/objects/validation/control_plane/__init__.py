"""The checks of kinds about the control plane itself.

flowcontrol     flowcontrol.apiserver.k8s.io: flow schemas, priority levels
rbac            rbac.authorization.k8s.io: roles and their bindings
registrations   apiregistration.k8s.io and certificates.k8s.io
"""
