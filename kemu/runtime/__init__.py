"""Where actors live: one ``Env``, two runtimes (``sim`` in virtual time, ``ray`` on real processes). Begin at ``env``.

env                     everything an actor sees of the world
runtimes                what a runtime offers to whoever drives a run
random_streams          random numbers by name, all from one seed
distributions           what scenarios draw from them
loads                   how busy the processes of a run are, and what holds it up
file_names, tasks       helpers of both runtimes

rpc                     gRPC in memory, and the network of actors that live in one process
sim                     the simulation: event loop, virtual time, latency, disks, crashes
ray                     the driver on Ray, and the cells: processes that hold actors
"""
