"""Kind ``Experiment``: from a file to an experiment, or to all of its mistakes at once."""
