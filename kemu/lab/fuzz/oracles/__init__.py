"""What must hold at the end of every run, beside the checks.

registry     all of them, by id
pods         pods that fit are bound, bound pods are taken, what ends goes
workloads    objects that keep pods have them, and their statuses say so
pressure     kubelets notice that memory is short; the kernel kills no more than it has to

An oracle says nothing where Kubernetes promises nothing: each states what it takes for granted.
"""
