"""The DaemonSet controller (`pkg/controller/daemon`).

daemon_sets        the controller
daemon_pods        which nodes should run a pod, and which may keep it
daemon_histories   ControllerRevisions of a DaemonSet
"""
