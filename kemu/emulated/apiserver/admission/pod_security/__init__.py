"""PodSecurity: what labels of a namespace allow its pods (``k8s.io/pod-security-admission``).

policies        what labels say: a level and a version each to enforce, to audit and to warn of
visits          the containers of a pod, and words that the checks share
baseline        the checks of the level ``baseline``
restricted      those that ``restricted`` adds
evaluations     which checks a level has in a version, and what they say together
plugin          who is asked when: pods, workloads, and namespaces whose labels change
"""
