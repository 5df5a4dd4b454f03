"""The deterministic runtime: all actors of a run in one process, in virtual time. Begin at ``simulation``.

simulation              the runtime, and the Env of each actor
crashes                 what a crash does
clocks, wires, disks    an actor's time, the latency of its messages, its files
redraws                 a run whose future is drawn from another seed
loops, agendas          the event loop, and what it has to do when
owners, guards          whose code runs; what raises when actors reach out of the simulation

actor_tests             runs of single actors in sim, and a sink that keeps the log
cores                   the cores that the control plane shares
faults                  the faults that are in force in the simulation, and what begins each kind of them
steering                steering: choosing when messages arrive
stepped_loops           a virtual loop that runs in slices, between which it stands still
"""
