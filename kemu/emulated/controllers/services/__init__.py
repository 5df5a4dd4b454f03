"""The controllers of Services: who is behind each of them.

slices           the actor ``controller/endpointslice``: the EndpointSlices of Services with a selector
packing          which endpoints go into which slice
hints            which zones and nodes an endpoint is for, where a Service has a traffic distribution
legacy           the actor ``controller/endpoints``: their Endpoints
subsets          addresses and ports, grouped as Endpoints state them
mirroring        the actor ``controller/endpointslice-mirroring``: Endpoints that users write, as EndpointSlices
load_balancers   the actor ``controller/service-lb``: addresses of load balancers
ranges           the actor ``controller/service-cidr``: ServiceCIDRs are ready, and stay as long as they are needed
members          what the first two have in common: which pods belong to which Service
trackers         the slices that a controller manages: which are there, and which it has written and does not see yet
endpoints        how a pod becomes an endpoint, and a port of a Service one of an endpoint
"""
