"""Commands around clusters that stay up: kemu's own and their clocks and faults, real ones, Ray.

calibrate      ``kemu calibrate``: measures a real control plane, and writes a timing preset
chaos          ``kemu chaos``: faults in a cluster that ``kemu up`` serves, while clients work with it
envtest        ``kemu envtest-assets``: programs for envtest of controller-runtime, with kemu behind them
nodes          ``kemu nodes``: kemu's kubelets as nodes of a real cluster
ray_clusters   ``kemu ray``: a Ray cluster of one's own that stands between runs, so that they need not start one
scheduler      ``kemu scheduler``: kemu's scheduler for the pods of a real cluster
step           ``kemu step``: lets the time of a cluster pass that ``kemu up --virtual`` serves
"""
