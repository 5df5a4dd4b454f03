"""ResourceQuota admission: what a request uses is charged to the status of the quotas before the object is stored.

    plugin             the plugin of the chain
    evaluations        requests of one namespace in batches; charges, and tries again where another request was first
    checks             whether one request fits into the quotas, and what they have then
    accounts           the quotas of a namespace, as new as this server knows them; writes their status
    limited_resources  what may only be used under a quota that covers it

Mirrors ``apiserver/pkg/admission/plugin/resourcequota``.
"""
