"""Hunts: bugs in other people's controllers, found without a word from them.

The controllers run as children of this process against a cluster of ``kemu up --virtual``. The steps of a user are
done once without perturbations, as the reference; then again and again, each time with one perturbation at one point
that the reference has shown to matter. What differs in the end, or on the way, is a finding.

projects        the file of a hunt: cluster, controllers, steps
perturbations   what is done to a controller, at which point
impacts         what led to what a controller wrote
planning        which perturbations are worth a trial
running         one trial, and many side by side
courses         what happened in a trial
judging         whether it went wrong
explaining      why it went wrong: cause, picture, course
findings        what a trial has found: the smallest steps, repetitions
coverage        what was tried, and what never came about
searches        the hunt as a whole
telling         what is left of a finding, and of a hunt
"""
