"""What one does with an emulated cluster.

scenario      files that say what happens, and how they are played      checks       what must hold in every run
exploration   searches for runs that fail, shrinking                    sweep        many runs, statistics, claims
telemetry     traces and figures of a run                               tell         stories, the report, explanations
up            a cluster that serves kubectl and other clients           fuzz         scenarios drawn at random
real          what runs beside real components of Kubernetes            hunt         bugs in controllers
conformance   decisions compared with those of Kubernetes               bench        measurements of kemu
incidents     scenarios from what a cluster shows of itself
"""
