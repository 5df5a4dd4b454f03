"""What answers exec and attach out of the box: commands that kemu understands, on the files and variables of the
container; and what the container prints.

Where a command changes what a probe of the container asks for (the page of a web server, a file), the probe's answers
change with it: the pod's annotation ``kemu.dev/probes`` says so from then on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from kemu.emulated.gateway.backends import Refused
from kemu.emulated.gateway.handlers import Session
from kemu.emulated.gateway.verbs import contents
from kemu.emulated.gateway.verbs.calls import Call
from kemu.emulated.gateway.verbs.sessions import pages
from kemu.emulated.gateway.verbs.sessions.places import Places
from kemu.emulated.kubelet.logs import lines
from kemu.emulated.kubelet.probes import answers
from kemu.emulated.kubelet.programs import courses, shells, syntax
from kemu.emulated.kubelet.programs.files import Files
from kemu.emulated.kubelet.programs.shells import Process
from kemu.messages.k8s import core_v1_pb2
from kemu.messages.v1 import api_pb2

_SHELLS = ("sh", "bash", "ash", "dash")
_READERS = (*_SHELLS, "cat", "tee", "grep", "wc", "head", "tail", "tar", "base64", "sort", "xargs", "read")
"""Commands that read standard input."""
_MOST_INPUT = 1 << 20
_MOST_STEPS = 20_000
_HINT = "containers are simulated, and only a few commands are understood: a handler can answer (kemu up --handlers)"
_FAILS = {"failsFrom": "0s"}
"""Rules of a probe that fails."""
_NOTICED_S = 0.5


class Console:
    """One container for one client."""

    def __init__(self, call: Call, places: Places, pod: core_v1_pb2.Pod, container: core_v1_pb2.Container) -> None:
        self._call = call
        self._places = places
        self._pod = pod
        self._container = container

    async def run(self, session: Session) -> int:
        """Answer exec."""
        command = list(session.command)
        stdin = b""
        name = command[0].rpartition("/")[2]
        if name in _SHELLS and len(command) == 1:
            return await self._interactive(session)
        if name in _READERS:
            while (piece := await session.read()) and len(stdin) < _MOST_INPUT:
                stdin += piece
        printed: list[tuple[int, str]] = []
        shell, tree = await self._shell(printed)
        before = self._probed(tree)
        shell.stdin = stdin.decode(errors="surrogateescape")
        code = await self._carry_out(session, Process(shell, command), printed)
        await self._tell_probes(before, self._probed(tree))
        return code

    async def _shell(self, printed: list[tuple[int, str]]) -> tuple[shells.Shell, Files]:
        sources = await contents.sources_of(self._call, self._pod, self._container)
        now_s = self._call.now_s()
        tree = self._places.files(self._pod, self._container, sources, now_s)
        shell = courses.shell_in(
            self._pod,
            self._container,
            tree,
            seed=f"{self._pod.metadata.uid}/{now_s}",
            unix_s=now_s,
            sources=sources,
            told=lambda at_s, descriptor, text: printed.append((descriptor, text)),
            most_steps=_MOST_STEPS,
        )
        return shell, tree

    async def _carry_out(self, session: Session, process: Process, printed: list[tuple[int, str]]) -> int:
        """In the time of the cluster."""
        while True:
            try:
                at_s = process.next_s
                outcome = process.advance(at_s)
            except syntax.NotUnderstood as error:
                await _flush(session, printed)
                await session.write_error(_line(session, f"kemu: {error}: {_HINT}"))
                return shells.NOT_FOUND
            await _flush(session, printed)
            if outcome is not None and outcome.run_s is not None:
                return outcome.exit_code
            await self._call.clock.sleep(3600.0 if outcome is not None else process.next_s - at_s, background=True)

    async def _interactive(self, session: Session) -> int:
        """A shell whose commands come over standard input."""
        printed: list[tuple[int, str]] = []
        shell, tree = await self._shell(printed)
        prompt = f"{shell.cwd} # " if session.tty else ""
        await session.write(prompt)
        line, pending = "", ""
        while piece := await session.read():
            for sign in piece.decode(errors="replace"):
                if session.tty:
                    line = await _typed(session, line, sign)
                    if sign == "\x04" and not line:
                        return shell.status
                    if sign == "\x03":
                        line = pending = ""
                        await session.write(f"^C\r\n{prompt}")
                    if sign not in "\r\n":
                        continue
                elif sign != "\n":
                    line += sign
                    continue
                pending, line = pending + line + "\n", ""
                try:
                    script = syntax.parse(pending)
                except syntax.NotUnderstood:
                    if session.tty and len(pending) < _MOST_INPUT and _is_open(pending):
                        await session.write("> ")
                        continue
                    if not session.tty and len(pending) < _MOST_INPUT:
                        continue
                    script = None
                before = self._probed(tree)
                words = ["eval", pending]
                pending = ""
                shell.world.steps = 0
                shell.world.unix_s = self._call.now_s() - shell.at_s
                try:
                    if script is None:
                        raise syntax.NotUnderstood("this is not understood")
                    process = Process(shell, words)
                    exits = _ends(script)
                    shell.status = await self._carry_out(session, process, printed)
                    if exits:
                        return shell.status
                except syntax.NotUnderstood as error:
                    await session.write_error(_line(session, f"kemu: {error}: {_HINT}"))
                await self._tell_probes(before, self._probed(tree))
                prompt = f"{shell.cwd} # " if session.tty else ""
                await session.write(prompt)
        return shell.status

    # Probes

    def _probed(self, tree: Files) -> dict[str, bool]:
        """What each probe of the container would find."""
        found = {}
        for kind in answers.KINDS:
            if self._container.HasField(f"{kind}Probe"):
                held = self._holds(tree, getattr(self._container, f"{kind}Probe").handler)
                if held is not None:
                    found[kind] = held
        return found

    def _holds(self, tree: Files, handler: core_v1_pb2.ProbeHandler) -> bool | None:
        """None: files do not tell."""
        if handler.HasField("httpGet"):
            return pages.exists(self._container, tree, handler.httpGet.path)
        if handler.HasField("exec") and handler.exec.command:
            shell = courses.shell_in(self._pod, self._container, tree, seed="probe", unix_s=self._call.now_s())
            try:
                outcome = Process(shell, list(handler.exec.command)).outcome_of_all()
            except syntax.NotUnderstood:
                return None
            return outcome.run_s is not None and outcome.exit_code == 0
        return None

    async def _tell_probes(self, before: Mapping[str, bool], after: Mapping[str, bool]) -> None:
        changed = {kind: holds for kind, holds in after.items() if before.get(kind) != holds}
        if not changed:
            return
        pod = await pod_of(self._call)
        if pod is None or pod.metadata.uid != self._pod.metadata.uid:
            return
        try:
            stated = json.loads(pod.metadata.annotations.get(answers.PROBES, "{}"))
            rules = stated.setdefault(self._container.name, {})
            for kind, holds in changed.items():
                is_own = rules.get(kind, _FAILS)["failsFrom"] == _FAILS["failsFrom"]
                runs = getattr(self._container, f"{kind}Probe").handler.HasField("exec")
                if not holds and is_own:
                    rules[kind] = _FAILS
                elif is_own and (kind in rules or runs):
                    rules[kind] = {**_FAILS, "failsFor": self._until_next_probe(pod)}
        except (ValueError, AttributeError, KeyError, TypeError):
            return  # the pod says itself what they answer, and not as JSON
        patch = {"metadata": {"annotations": {answers.PROBES: json.dumps(stated)}}}
        request = api_pb2.PatchRequest(
            resource=self._call.where(),
            name=self._call.path.name,
            patch=json.dumps(patch).encode(),
        )
        try:
            await self._call.look("Patch", request)
        except Refused:
            return

    def _until_next_probe(self, pod: core_v1_pb2.Pod) -> str:
        """The kubelet probes at once when the pod changes. A real one hears of the file with the probe after that."""
        instance = lines.current(pod, self._container)
        started_s = self._call.now_s() if instance is None else instance.started_s
        return f"{self._call.now_s() - started_s + _NOTICED_S:.3f}s"


def _ends(script: syntax.Script) -> bool:
    """Whether its last command is exit."""
    if not script.items:
        return False
    command = script.items[-1].first.commands[-1]
    return (
        isinstance(command, syntax.Simple)
        and bool(command.words)
        and "".join(part.text for part in command.words[0]) in ("exit", "exec")
    )


def _is_open(text: str) -> bool:
    """Whether a line may go on in the next one."""
    return (
        text.rstrip().endswith(("\\", "|", "&&", "do", "then", "else", "{", "("))
        or text.count("'") % 2 == 1
        or (text.count('"') % 2 == 1)
    )


async def _typed(session: Session, line: str, sign: str) -> str:
    """Echo what is typed at a terminal; returns the line as it is then."""
    if sign in "\r\n":
        await session.write("\r\n")
        return line
    if sign in "\x7f\b":
        if line:
            await session.write("\b \b")
        return line[:-1]
    if sign.isprintable():
        await session.write(sign)
        return line + sign
    return line


async def _flush(session: Session, printed: list[tuple[int, str]]) -> None:
    pieces, printed[:] = list(printed), []
    for descriptor, text in pieces:
        text = text.replace("\n", "\r\n") if session.tty else text
        await (session.write_error(text) if descriptor == 2 else session.write(text))


def _line(session: Session, text: str) -> str:
    return text + ("\r\n" if session.tty else "\n")


# What the container is made of --------------------------------------------------------------------------------------


async def pod_of(call: Call) -> core_v1_pb2.Pod | None:
    """As it is now; None: it is gone."""
    request = api_pb2.GetRequest(resource=call.where(), name=call.path.name)
    try:
        return core_v1_pb2.Pod.FromString((await call.look("Get", request)).object)
    except Refused:
        return None
