"""Dynamic resource allocation in the scheduler: the allocator, as a calculation, and what it calculates with.

allocators    the search for devices, node by node: begin here
binding       what PreBind writes, and how it waits for devices to be ready
capacities    consumable capacity: what a request takes of a device
constraints   equal or different attributes within a claim
extended      claims for extended resources that device classes stand behind
inventory     slices and devices, decoded
pod_claims    the claims of a pod in one attempt
pools         slices of a pool as one node sees them
requests      requests and their alternatives, tolerations
results       what was found, as the status of a claim
states        which devices are allocated
trackers      claims, slices and classes as the scheduler knows them

No plugin but DynamicResources uses it, whose decisions for pods without claims need none of it.
"""
