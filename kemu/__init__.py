"""kemu: a Kubernetes scheduling control plane to race, starve and break, in virtual time or on Ray."""

import os

# gRPC reads this when it is first imported, by whichever module. kemu never forks with gRPC at work, but Ray starts its
# processes from the driver, and gRPC would remark on each of them on the terminal.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

__version__ = "0.1.0"
