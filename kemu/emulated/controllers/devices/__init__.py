"""The controllers of devices, one actor each.

resource_claims    generates ResourceClaims from templates, takes pods that have ended off claims, deallocates
created_claims     what the claim controller has created and its informer does not show yet
taint_evictions    deletes pods whose devices have a NoExecute taint
tainted_devices    which pods those are, and when they must go
"""
