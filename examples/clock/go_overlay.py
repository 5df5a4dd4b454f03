"""The virtual time of a cluster as the time of day of a program in Go, which asks no library for it.

    overlay=$(python examples/clock/go_overlay.py build/clock)
    go build -overlay "$overlay" -o manager ./cmd
    KEMU_CLOCK=runs/…/clock ./manager --kubeconfig …

Writes a copy of the installed Go's ``time.Now`` into the folder, and prints the file for ``-overlay``. Only
``time.Now`` is replaced, and only where KEMU_CLOCK is set; timers and sleeps stay those of the machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

_HEAD = "func Now() Time {\n"
_CALL = "\tif sec, nsec, ok := kemuNow(); ok {\n\t\treturn Time{uint64(nsec), sec + unixToInternal, Local}\n\t}\n"
_SOURCE = """package time

import (
	"sync"
	"syscall"
)

var (
	kemuOnce sync.Once
	kemuFile = -1
)

// kemuNow reads the clock of a cluster: seconds, a point, nine digits.
func kemuNow() (int64, int32, bool) {
	kemuOnce.Do(func() {
		if path, found := syscall.Getenv("KEMU_CLOCK"); found {
			if file, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0); err == nil {
				kemuFile = file
			}
		}
	})
	if kemuFile < 0 {
		return 0, 0, false
	}
	var text [32]byte
	size, err := syscall.Pread(kemuFile, text[:], 0)
	if err != nil {
		return 0, 0, false
	}
	var sec, nsec int64
	at := &sec
	for _, one := range text[:size] {
		if one == '.' {
			at = &nsec
		} else if one >= '0' && one <= '9' {
			*at = *at*10 + int64(one-'0')
		}
	}
	return sec, int32(nsec), size > 11
}
"""


def write(folder: Path) -> Path:
    """Returns the file for ``go build -overlay``. Raises RuntimeError for a Go whose ``time.Now`` looks different."""
    root = subprocess.run(["go", "env", "GOROOT"], capture_output=True, text=True, check=True).stdout.strip()
    original = Path(root) / "src/time/time.go"
    text = original.read_text()
    if text.count(_HEAD) != 1:
        raise RuntimeError(f"{original}: has not the function Now() that this knows")
    folder.mkdir(parents=True, exist_ok=True)
    changed, added, overlay = folder / "time.go", folder / "kemu_clock.go", folder / "overlay.json"
    changed.write_text(text.replace(_HEAD, _HEAD + _CALL))
    added.write_text(_SOURCE)
    replaced = {str(original): str(changed.resolve()), str(original.with_name(added.name)): str(added.resolve())}
    overlay.write_text(json.dumps({"Replace": replaced}))
    return overlay.resolve()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: go_overlay.py FOLDER")
    print(write(Path(sys.argv[1])))
