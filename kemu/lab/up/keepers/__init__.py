"""Keep what Kubernetes' own controllers keep in every cluster; :mod:`kemu.lab.up.bootstrap_objects` starts them.

namespaces     in each namespace the account ``default`` and the authority of the API server
flows          flow schemas and priority levels
api_services   APIServices: those of what is served here, and why others are not available
policies       what is wrong with the types in the expressions of policies
credentials    old requests for certificates, and tokens of accounts that are gone
"""
