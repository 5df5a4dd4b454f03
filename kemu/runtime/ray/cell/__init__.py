"""A cell: one process that holds actors, serves them over gRPC, and obeys the driver. Begin at ``control``."""
