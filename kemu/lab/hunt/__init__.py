"""Hunts: bugs in other people's controllers, found without a word from them.

The controllers run as children of this process against a cluster of ``kemu up --virtual``. The steps of a user are
done once without perturbations, as the reference; then again and again, each time with one perturbation at one point
that the reference has shown to matter. What differs in the end, or on the way, is a finding.

projects        the file of a hunt: cluster, controllers, steps
perturbations   what is done to a controller, at which point
planning        which perturbations are worth a trial
strikes         carries out perturbations when their points come
trials          one trial: cluster, controllers, steps
processes       a controller as a child of this process
interceptors    between controllers and gateway: sees what they write and are told, and perturbs it
courses         what happened in a trial
oracles         whether it went wrong
findings        what a trial has found: the smallest steps, repetitions
searches        the hunt as a whole
pools           trials side by side, in processes
coverage        what was tried, and what never came about
summaries       the hunt in words
tellings        the course of a trial in words
reports         what is left of a finding: plan, text, test
"""
