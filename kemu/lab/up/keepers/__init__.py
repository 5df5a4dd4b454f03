"""Keep what Kubernetes' own controllers keep in every cluster; :mod:`kemu.lab.up.bootstrap_objects` starts them.

namespaces     in each namespace the account ``default`` and the authority of the API server
flows          flow schemas and priority levels
api_services   APIServices: those of what is served here, and why others are not available
credentials    old requests for certificates, and tokens of accounts that are gone
policy_types   what in the expressions of validating admission policies does not suit the kinds that they match
"""
