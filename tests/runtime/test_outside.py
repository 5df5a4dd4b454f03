"""Questions to a process outside use its connections again, and find out when these are of no use any more."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization

from kemu.runtime import outside
from tests.admission import webhook_server

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


class Process:
    """Answers each question on a connection by ``answer``, which may close it; counts connections and questions."""

    def __init__(self, answer: Callable[[Process, asyncio.StreamWriter], Awaitable[None]]) -> None:
        self.connections = self.questions = 0
        self._answer = answer

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
                await reader.readexactly(int(length.split(b":")[1]))
                self.questions += 1
                await self._answer(self, writer)
        writer.close()


async def answers(process: Process, writer: asyncio.StreamWriter) -> None:
    writer.write(ANSWER)


async def hangs_up_afterwards(process: Process, writer: asyncio.StreamWriter) -> None:
    writer.write(ANSWER)
    writer.close()


async def hangs_up_at_the_second(process: Process, writer: asyncio.StreamWriter) -> None:
    if process.questions == 2:
        writer.close()
    else:
        writer.write(ANSWER)


async def always_hangs_up(process: Process, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def is_late_at_the_second(process: Process, writer: asyncio.StreamWriter) -> None:
    if process.questions == 2:
        await asyncio.sleep(30)
    writer.write(ANSWER)


def ask(
    answer: Callable[[Process, asyncio.StreamWriter], Awaitable[None]],
    questions: int,
    timeout_s: float = 20.0,
    beside: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]] | None = None,
) -> tuple[Process, list[str]]:
    """One after the other; what came of each. ``beside``: another process, which all slots are asked at the time."""

    async def main() -> tuple[Process, list[str]]:
        process = Process(answer)
        waiting: list[asyncio.Task[outside.Answer]] = []
        hanging: asyncio.Server | None = None
        signer, signer_key = webhook_server.authority()
        made, key = webhook_server.certificate(signer, signer_key)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "server.pem"
            plain = serialization.NoEncryption()
            secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
            file.write_bytes(made.public_bytes(serialization.Encoding.PEM) + secret)
            context.load_cert_chain(file)
        server = await asyncio.start_server(process.serve, "127.0.0.1", 0, ssl=context)
        port = server.sockets[0].getsockname()[1]
        authority = signer.public_bytes(serialization.Encoding.PEM)
        found = []
        try:
            if beside is not None:
                hanging = await asyncio.start_server(beside, "127.0.0.1", 0)
                where = hanging.sockets[0].getsockname()[1]
                lost = outside.Question("https://hook.default.svc/x", b"{}", 60.0, authority, where)
                waiting = [asyncio.create_task(outside.ask(lost)) for _ in range(outside.CONNECTIONS + 5)]
                await asyncio.sleep(0.2)
            for _ in range(questions):
                try:
                    question = outside.Question("https://hook.default.svc/x", b"{}", timeout_s, authority, port)
                    found.append((await outside.ask(question)).body.decode())
                except outside.Unanswered as error:
                    found.append(str(error))
                await asyncio.sleep(0.05)
        finally:
            for one in waiting:
                one.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
            await outside.close()
            server.close()
            if hanging is not None:
                hanging.close()
                await asyncio.sleep(0.2)
        return process, found

    return asyncio.run(main())


def test_a_connection_serves_many_questions() -> None:
    process, found = ask(answers, 5)
    assert found == ["{}"] * 5
    assert process.connections == 1


@pytest.mark.parametrize(
    ("answer", "connections", "questions"), [(hangs_up_afterwards, 3, 3), (hangs_up_at_the_second, 2, 4)]
)
def test_a_connection_that_the_process_gave_up_is_made_anew(
    answer: Callable[[Process, asyncio.StreamWriter], Awaitable[None]], connections: int, questions: int
) -> None:
    process, found = ask(answer, 3)
    assert found == ["{}"] * 3
    assert (process.connections, process.questions) == (connections, questions)


def test_a_process_that_never_answers_is_asked_once() -> None:
    process, found = ask(always_hangs_up, 2)
    assert found == ["EOF", "EOF"]
    assert process.questions == 2


def test_a_connection_with_an_answer_to_come_is_not_used_again() -> None:
    process, found = ask(is_late_at_the_second, 3, 0.5)
    assert found == ["{}", "context deadline exceeded", "{}"]
    assert process.connections == 2


def test_a_process_that_hangs_takes_no_slot_of_another_one() -> None:
    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    assert ask(answers, 1, 20.0, hang)[1] == ["{}"]
