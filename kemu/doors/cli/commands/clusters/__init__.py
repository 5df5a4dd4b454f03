"""Commands around clusters that stay up: kemu's own and their clocks and faults, a scheduler for real ones, Ray."""
