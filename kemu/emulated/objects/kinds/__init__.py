"""What is particular to single kinds.

autoscalers    HorizontalPodAutoscalers in their two forms: that of autoscaling/v2 is stored
components     ComponentStatus, a kind that is never stored
removed_betas  betas that Kubernetes no longer serves, in the forms that it stores
flow_defaults  the flow schemas and priority levels that every cluster has
service_ranges ServiceCIDRs and IPAddresses
"""
