"""Generated code, from proto/ by scripts/genproto.

k8s    objects of Kubernetes, with stubs         v1     messages and services of kemu's actors
etcd   the key-value API of etcd
"""
