"""The actors of the experiment on kemu: its schedulers, and the owner of the jobs."""
