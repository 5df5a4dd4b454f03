"""What components must agree on about devices.

claims     which claims a pod uses, who holds them, and whether a toleration covers a taint of a device
"""
