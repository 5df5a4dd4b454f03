"""Recorded decisions and timelines of the kube-scheduler.

devices          recorded decisions about pods with ResourceClaims
judgements       how decisions of the scheduler compare with the recorded ones: in full
questions        what recorded cases ask the scheduler: one decision about a pod, or decisions about several in turn
scripts          a Permit plugin and an extender that do what a recorded case tells them, as those of the recorder do
sequences        recorded sequences: pods that one scheduler decides on in turn, made again by its deciders
small_clusters   a minimal cluster around kemu's scheduler, with the rules that the recorded timelines state
"""
