"""The scheduling queue: all of it is :mod:`kemu.emulated.scheduler.queue.queues`."""
