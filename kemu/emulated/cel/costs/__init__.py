"""What expressions cost, as Kubernetes counts it.

estimates      at least and at most, for all inputs within their declared sizes
actual_costs   what calls cost when they are made
ranges         ranges of sizes and costs, whose sums and products stop at 64 bits
"""
