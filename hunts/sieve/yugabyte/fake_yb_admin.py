"""``yb-admin`` in the pods of YugabyteDB, as far as the operator asks for it."""

import json

from kemu.emulated.gateway.handlers import Session

_blacklists: dict[str, dict[str, None]] = {}
"""Addresses, by the UID of the master's pod."""


async def execute(session: Session) -> int:
    words = " ".join(session.command).split()
    blacklist = _blacklists.setdefault(session.pod["metadata"]["uid"], {})
    if "get_universe_config" in words:
        hosts = [{"host": one.rpartition(":")[0], "port": int(one.rpartition(":")[2])} for one in blacklist]
        await session.write(json.dumps({"version": 1, "serverBlacklist": {"hosts": hosts}}))
    elif "change_blacklist" in words:
        operation, address = words[-2:]
        blacklist.pop(address, None)
        if operation == "ADD":
            blacklist[address] = None
    elif "get_load_move_completion" in words:
        await session.write("Percent complete = 100 : 0 remaining out of 0\n")
    else:
        await session.write_error(f"yb-admin: {' '.join(words)} is not spoken here\n")
        return 1
    return 0
