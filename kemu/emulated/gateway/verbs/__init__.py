"""From a request to calls of the API server's gRPC service and back, by groups of verbs.

calls         what every verb needs: the request, what its URL names, who answers it
reads         get and list
writes        create, update, patch
deletes       delete, of one object or a collection
watches       watch
logs, metrics what simulated containers say, and what they use

component_statuses  whether the parts of the control plane are healthy
admissions    what asks webhooks and policies about requests that store nothing
reviews       what is posted to be answered, not stored: who one is, what a user may do
sessions      sessions with containers: exec, attach, port-forward, proxies
subresources  what can be done to a part of an object, or by way of it: status, scale, binding, eviction, commands
"""
