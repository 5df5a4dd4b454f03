"""The autoscaler of pods: the actor ``controller/horizontal-pod-autoscaler``. Begin at ``autoscaler``.

    autoscaler    one look at a HorizontalPodAutoscaler every 15 s: its scale, its metrics, its status
    metrics       what each metric says, and how it is told in the status
    replicas      from usage to a number of replicas
    rates         how fast that number may follow: stabilization windows, scaling policies
    samples       what pods use, as the metrics server would tell it

Mirrors ``pkg/controller/podautoscaler``. It stands beside the cluster autoscaler as it asks what kubelets measure.
"""
