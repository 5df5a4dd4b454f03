"""The real kube-scheduler and kemu's, pod by pod, on one live cluster: ``kemu conformance live``.

sessions         a whole live comparison: starts the parts, plays, stops them
plays            clusters on a real API server, a stream of pods for each, and changes in between
makers           draws clusters
drawn_devices    draws slices and claims of devices
drawn_extenders  what two extenders say, to both schedulers
drawn_pods       draws pods of all families
parts            starts the real etcd, kube-apiserver and kube-scheduler
scheduler_logs   the decisions of the real scheduler, from its log, with all scores
shadows          kemu's scheduler beside it, which sees the same watches and decides, but acts on nothing
stand_ins        what kubelets and the PersistentVolume controller would do
waiters          waiting for what the log or the watches tell
verdicts         compares two decisions
reports          counts them
"""
