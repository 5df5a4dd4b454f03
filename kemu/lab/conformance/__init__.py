"""Whether kemu decides as Kubernetes does: recorded decisions of the real code, compared with those of kemu's code.

:mod:`.registry` names the kinds of cases, :mod:`.case_files` reads them, :mod:`.agreements` asks and counts. Modules in
the folders translate the cases of some families, start the code that runs in production (actors on a
:mod:`control plane <.control_planes>` in virtual time), and translate the result. The command is ``kemu conformance``.

comparisons   compares an answer with the record as JSON data: a missing key equals an empty value
controllers   recorded decisions of the node lifecycle and the taint eviction controller
gates         the feature gates of Kubernetes, and what kemu does about each: ``kemu conformance gates``
jobs          recorded syncs of Jobs and CronJobs, and the times that cron expressions mean
kubelet       recorded decisions of the kubelet
live          the real kube-scheduler and kemu's, pod by pod, on one live cluster: ``kemu conformance live``
merges        the JSON merge patches of recorded cases
quotas        recorded admissions by quotas and limit ranges, and counts of the quota controller
readings      conversions between the JSON of recorded cases and the objects of kemu
requests      recorded requests over HTTP, and what an API server answers to them
scheduler     recorded decisions and timelines of the kube-scheduler
storages      the objects of storage in recorded cases
volumes       recorded cases about volumes: the plugin VolumeBinding over time
writes        recorded writes to objects: applies, patches, updates, and the managed fields that come of them
"""
