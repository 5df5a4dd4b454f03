"""The checks of kinds that lead to pods.

services   Services and NetworkPolicies
endpoints  Endpoints and EndpointSlices
ingresses  Ingresses and IngressClasses
"""
