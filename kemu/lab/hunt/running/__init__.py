"""Trials: a cluster in virtual time, controllers as children, steps, and perturbations.

trials         one trial
snapshots      many trials from one set-up of their cluster
users          who does the steps
processes      a controller as a child of this process
outputs        panics in what a controller prints
interceptors   between controllers and gateway: sees what they write and are told, and perturbs it
watches        what watches tell while a view stands still, or comes late
strikes        carries out perturbations when their points come
waits          what the threads of a controller wait for
alarms         timers of controllers in virtual time
clocks         the time of a cluster in controllers in Python
pools          trials side by side, in processes
networks       a network for each of them
"""
