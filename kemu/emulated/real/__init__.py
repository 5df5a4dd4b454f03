"""Real components of Kubernetes in the place of emulated ones, as processes of this machine.

control_planes    which actor of a run is which program, and what is read while they run. Begin here
standing          the same with a cluster of others, of which the run is a guest; guests: what speaks against a run, and
                  what removes it; observations: what happens there, by watches
executables       where the programs are
components        their command lines and configurations
audit_logs        what API servers say of requests
scheduler_logs    what kube-schedulers say of attempts
scheduler_metrics what kube-schedulers count of attempts
transactions      what is in etcd, and when it changed
"""
