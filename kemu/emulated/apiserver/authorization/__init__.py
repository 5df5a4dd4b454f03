"""Who may do what: the authorization modes Node and RBAC, as kubeadm sets them up.

    authorizers  asks the modes about a request, and refuses it in Kubernetes' words; begin here
    attributes   what a request is about: verb, group, resource, namespace, name
    nodes        mode Node: what a kubelet may do, by its node (``plugin/pkg/auth/authorizer/node``)
    roles        mode RBAC: roles and bindings, those of a new cluster and those that are objects
    requesters   the node whose kubelet made the request that is being carried out, for admission

``roles.json`` holds the roles of a new cluster, as Kubernetes itself makes them: ``scripts/record roles``.

    escalations  no user gives away rights that it lacks
    reviews      answers what a user may do, without doing it (``pkg/registry/authorization``)
"""
