"""From what a cluster shows of itself to a scenario: the folder that ``kemu import`` writes.

dumps      files and folders of objects, cluster-info dumps
measured   usage: kubectl top, the metrics API, exports of Prometheus
clusters   the same from a cluster that stands, read only
fates      what becomes of each object: kept, made anew, left out
trimming   objects without what the API server fills in
lives      what pods did and used, for those that controllers make
timelines  the Events of the cluster
rehearsals whether the API server takes what was made
folders    the folder: scenario, manifests, time line
"""
