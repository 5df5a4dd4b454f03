"""``kemu up``: a cluster that real clients talk to. Begin at ``sessions``.

sessions        one cluster from its start to its verdict, with the gateway before it
clusters        which cluster: that of a scenario, or so many nodes
credentials     what the server shows, and who may do everything; ``kubeconfigs`` are files for clients
bootstrap_objects  the objects that clients expect in every cluster; ``keepers`` look after those that Kubernetes keeps
live_lines         what happens, in lines; ``terminals`` words them for people and programs, ``prints`` writes them
virtual         a cluster whose clock stands until it is asked
chaos           faults of a cluster that real clients talk to
envtest         an API server alone, as the programs that envtest of controller-runtime starts
container_handlers  loads the functions that answer for containers
lives_files     files of ``kemu up --lives``
callers         who makes a request from outside
controls        the control endpoint: how ``kemu step`` and ``kemu chaos`` reach a cluster that is up
embedded        a cluster of ``kemu up`` for the tests of programs that speak with one: controllers, operators
endpoints       where clients reach a cluster: the server, behind it the control endpoint, the layer of faults
remotes         calls the control endpoint of a cluster that is up, by its kubeconfig
"""
