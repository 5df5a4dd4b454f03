"""The runtime ``wall``."""
