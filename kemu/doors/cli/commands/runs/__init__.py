"""Commands about single runs: make one, repeat or recover it, explain and tell it; the shipped scenarios."""
