"""What whole clusters cost: pods until they are Running, timed or counted, idle and large clusters, runs on Ray."""
