"""What a wheel has beside the package: completion for shells, and man pages. A build hook of Hatch."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WheelHook(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return  # a checkout makes them when they are asked for
        os.environ["COLUMNS"] = "100"  # else pages depend on the terminal
        sys.path.insert(0, self.root)
        sys.dont_write_bytecode = True
        from kemu.doors.cli import main
        from kemu.doors.cli.commands import completion

        self._made = tempfile.TemporaryDirectory(prefix="kemu-wheel-")
        for path, text in completion.files(main.parser()).items():
            file = Path(self._made.name, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
            file.chmod(0o644)
            build_data["shared_data"][str(file)] = path

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            self._made.cleanup()
