"""What quotas count: read by admission, which charges requests, and by the controller, which recounts.

    quotas      a ResourceQuota, read: selectors, hard limits, what is used
    scopes      which scopes an object is in
    evaluators  how objects of a kind are counted; the table of kinds
    pods        pods: requests, limits, overhead, counts; terminal pods do not count
    claims      PersistentVolumeClaims: storage and number, in all and by storage class
    device_claims  ResourceClaims: number, and devices by class
    services    Services: number, load balancers, node ports
    usages      the sum over a namespace

Mirrors ``apiserver/pkg/quota/v1`` and ``pkg/quota/v1/evaluator/core``.

    registry    the evaluator of each kind (``pkg/quota/v1/evaluator/core/registry.go``, ``pkg/quota/v1/install``)
"""
