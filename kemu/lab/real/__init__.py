"""Real clusters: what kemu runs beside real components of Kubernetes.

calibrations   loads on a real control plane, and the timing preset that is fitted to them; ``measurements`` reads run
               logs
calibration_pictures   what was measured, drawn
kubelets       the kubelets of a scenario's nodes, or of so many equal ones, for ``kemu nodes``
"""
