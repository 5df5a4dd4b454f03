"""The scheduling queue: all of it is :mod:`kemu.scheduler.queue.queues`."""
