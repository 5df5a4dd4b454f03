"""Controllers of roles.

aggregation  the actor ``controller/clusterrole-aggregation``: ClusterRoles that have the rules of others
"""
