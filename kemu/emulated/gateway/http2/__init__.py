"""HTTP/2, as client-go asks for it by ALPN: many requests at the same time on one connection.

connections  one connection: frames, flow control, limits, its end
exchanges    one request and its answer, as ASGI has them
"""
