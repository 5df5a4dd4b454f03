"""What whole clusters cost: pods until they are Running, timed or counted, idle and large clusters, runs on Ray.

counts           what one pod costs on its way to Running, counted and not timed: the same figures on every machine
idles            what an idle cluster costs: kubelets, heartbeats, and the controllers that look after nodes
large_clusters   the scenarios of ``scenarios/scale`` in virtual time, at full size or scaled down: set-up
racing           replicas of one scheduler that race for the same pods: what an attempt costs
ray_starts       how long a run on Ray waits for its processes: with all that ``ray.init`` starts
rollouts         what a rolling update of many Deployments costs the API server
scale_models     what a run on Ray takes on a machine that is not at hand: a model of several measured runs
scales           how large a cluster a machine holds on Ray: what nodes, cells and raylets cost in CPU
throughput       Pods from creation to Running, over the whole path
"""
