"""Who sends a request over HTTP.

authenticators   from headers and a client certificate to a user; the tokens that are known by heart
service_accounts tokens of service accounts, which the gateway signs itself
certificates     an authority of the cluster's own, and what it signs
signers          which requests for certificates are signed, and which are approved by themselves
impersonations   users that a request is made as (``Impersonate-User``)
"""
