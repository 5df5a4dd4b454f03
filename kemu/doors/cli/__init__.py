"""The command line: how it is read, what becomes of errors, pipes and interrupts; its commands are in ``commands``."""
