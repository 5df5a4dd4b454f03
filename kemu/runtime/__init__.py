"""Where actors live: one ``Env``, four runtimes: ``sim`` in virtual time, ``wall`` in one process in real time,
``ray`` on real processes, and ``real`` beside programs that kemu did not write. Begin at ``env``.

env                     everything an actor sees of the world
runtimes                what a runtime offers to the code that drives a run
random_streams          random numbers by name, all from one seed
distributions           what scenarios draw from them
loads                   how busy the processes of a run are, and what holds it up
file_names, tasks       helpers of all runtimes

rpc                     gRPC in memory, and the network of actors that live in one process
sim                     the simulation: event loop, virtual time, latency, disks, crashes
wall                    all actors in one process, on the wall clock
ray                     the driver on Ray, and the broker that starts processes
real                    real programs as actors of a run
host                    a cell: a process that holds actors, on Ray or on the wall clock
faults                  what can be done to actors, and to their disks
runlog                  the log of a run as bytes, and the folder that it is in
metrics                 names of metrics as the real components have them, values, texts
garbage                 the garbage collector around the runs of a process
words                   words of messages: counted nouns, and the known words most like one that is not known
skews                   clocks that are wrong
outside                 what actors ask of programs outside: webhooks
threads                 how many threads numpy's linear algebra starts: kemu's columns are too short for more than one
user_code               code that users bring along: scheduler plugins, extenders, schedulers of their own
"""
