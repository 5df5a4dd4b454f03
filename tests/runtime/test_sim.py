from __future__ import annotations

import grpc

from kemu.runtime.env import ActorSpec
from kemu.testing import sim
from kemu.v1 import api_pb2 as pb
from kemu.v1 import api_pb2_grpc as g


class Api(g.ApiServicer):
    def __init__(self, env, config):
        self.env = env
        env.serve(g.add_ApiServicer_to_server, self)

    async def run(self):
        self.env.ready()

    async def Get(self, request, context):
        if request.name == "abort":
            await context.abort(grpc.StatusCode.NOT_FOUND, "nope")
        return pb.ObjectResponse(object=request.name.encode())

    async def Session(self, requests, context):
        async for m in requests:
            await context.write(pb.SessionResponse(replies=[pb.Reply(id=c.id) for c in m.calls]))


def test_basic():
    async def main(rt):
        st = g.ApiStub(rt.env("user").dial("apiserver/0"))
        r = await st.Get(pb.GetRequest(name="x"))
        assert r.object == b"x"
        assert rt.clock.now_ns() == 2_000_000
        s = st.Session()
        await s.write(pb.SessionRequest(calls=[pb.Call(id=3)]))
        assert (await s.read()).replies[0].id == 3
        await s.done_writing()
        assert await s.read() is grpc.aio.EOF
        await rt.clock.sleep(5)
        return rt.clock.now_ns()

    assert sim(main, actors=[ActorSpec("apiserver/0", f"{__name__}:Api")]) == 5_006_000_000
