"""Calls between cells over gRPC.

gates, inbound          calls from others: who is let in, and which actor is meant; ``decoding`` of messages
channels, far_calls     calls to others, as actors dial and hold them; ``relays`` carry them while a fault concerns them
"""
