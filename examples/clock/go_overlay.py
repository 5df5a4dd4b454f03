"""The virtual time of a cluster as the time of a program in Go, which asks no library for it.

    overlay=$(python examples/clock/go_overlay.py build/clock)
    go build -overlay "$overlay" -o manager ./cmd
    KEMU_CLOCK=runs/…/clock ./manager --kubeconfig …

Writes copies of a few files of the installed Go into the folder, and prints the file for ``-overlay``. Replaced are
``time.Now``, where KEMU_CLOCK is set, and, where KEMU_TIMERS is set as ``kemu hunt`` does, timers, tickers and sleeps
from 50 ms on. Those end when the cluster has come to their time. Deadlines of connections stay those of the machine.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

_NOW = """	if sec, nsec, ok := kemuNow(); ok {
		return Time{uint64(nsec), sec + unixToInternal, Local}
	}
"""
_SLEEP = """func Sleep(d Duration) {
	if kemuIsLong(d) {
		<-NewTimer(d).C
		return
	}
	runtimeSleep(d)
}

func runtimeSleep(d Duration)
"""
_TICKER = "(*Timer)(unsafe.Pointer(t))"
_CHANGES = {
    "time/time.go": [("func Now() Time {\n", f"func Now() Time {{\n{_NOW}")],
    "time/sleep.go": [
        ("func Sleep(d Duration)\n", _SLEEP),
        (
            "\tt := newTimer(when(d), 0, sendTime, c, syncTimer(c))\n",
            "\tt := kemuNewTimer(d, sendTime, c, syncTimer(c))\n",
        ),
        ("\treturn newTimer(when(d), 0, goFunc, f, nil)\n", "\treturn kemuNewTimer(d, goFunc, f, nil)\n"),
        ("\treturn stopTimer(t)\n", "\tkemuForget(t)\n\treturn stopTimer(t)\n"),
        ("\tw := when(d)\n\treturn resetTimer(t, w, 0)\n", "\treturn kemuReset(t, d, 0)\n"),
    ],
    "time/tick.go": [
        ("newTimer(when(d), int64(d), sendTime, c, syncTimer(c))", "kemuNewTicker(d, c)"),
        (f"\tstopTimer({_TICKER})\n", f"\tkemuForget({_TICKER})\n\tstopTimer({_TICKER})\n"),
        (f"\tresetTimer({_TICKER}, when(d), int64(d))\n", f"\tkemuReset({_TICKER}, d, d)\n"),
    ],
    "runtime/time.go": [("//go:linkname timeSleep time.Sleep\n", "//go:linkname timeSleep time.runtimeSleep\n")],
}
"""By file below src: what is replaced, each once."""
_SOURCE = """package time

import (
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"
)

var (
	kemuClock []byte // the file, in memory: channels of timers get the time where no system call may be made
	kemuLine  = -1   // says when the next timer ends, and hears that it does

	kemuUsed atomic.Bool
	kemuLock sync.Mutex
	kemuEnds = map[*Timer]kemuEnd{}
	kemuTold int64
)

// kemuEnd is when a timer ends, in nanoseconds since 1970, and when again after that; 0: never.
type kemuEnd struct{ at, period int64 }

const (
	kemuLeast = 50 * Millisecond
	kemuNever = 1<<63 - 1
)

func init() {
	path, found := syscall.Getenv("KEMU_CLOCK")
	if !found {
		return
	}
	file, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	if kemuClock, err = syscall.Mmap(file, 0, 32, syscall.PROT_READ, syscall.MAP_SHARED); err != nil {
		kemuClock = nil
	}
	syscall.Close(file)
	if text, found := syscall.Getenv("KEMU_TIMERS"); found && kemuClock != nil {
		line := 0
		for _, one := range []byte(text) {
			line = line*10 + int(one-'0')
		}
		syscall.CloseOnExec(line)
		kemuLine = line
	}
}

// kemuNow reads the clock of a cluster: seconds, a point, nine digits.
func kemuNow() (int64, int32, bool) {
	if kemuClock == nil {
		return 0, 0, false
	}
	var text, again [32]byte
	for copy(text[:], kemuClock); ; text = again { // it may be written just now
		if copy(again[:], kemuClock); again == text {
			break
		}
	}
	var sec, nsec int64
	at := &sec
	size := 0
	for _, one := range text {
		if one == '.' {
			at = &nsec
		} else if one >= '0' && one <= '9' {
			*at = *at*10 + int64(one-'0')
			size++
		}
	}
	return sec, int32(nsec), size > 10
}

func kemuIsLong(d Duration) bool {
	return d >= kemuLeast && kemuLine >= 0
}

func kemuNewTimer(d Duration, f func(any, uintptr, int64), arg any, cp unsafe.Pointer) *Timer {
	if !kemuIsLong(d) {
		return newTimer(when(d), 0, f, arg, cp)
	}
	t := newTimer(kemuNever, 0, f, arg, cp)
	kemuAwait(t, d, 0)
	return t
}

func kemuNewTicker(d Duration, c chan Time) *Timer {
	if !kemuIsLong(d) {
		return newTimer(when(d), int64(d), sendTime, c, syncTimer(c))
	}
	t := newTimer(kemuNever, 0, sendTime, c, syncTimer(c))
	kemuAwait(t, d, d)
	return t
}

func kemuReset(t *Timer, d, period Duration) bool {
	kemuForget(t)
	if !kemuIsLong(d) {
		return resetTimer(t, when(d), int64(period))
	}
	pending := resetTimer(t, kemuNever, 0)
	kemuAwait(t, d, period)
	return pending
}

func kemuAwait(t *Timer, d, period Duration) {
	sec, nsec, ok := kemuNow()
	kemuLock.Lock()
	defer kemuLock.Unlock()
	end := sec*1e9 + int64(nsec) + int64(d)
	if !ok || end < 0 {
		end = kemuNever
	}
	kemuEnds[t] = kemuEnd{end, int64(period)}
	if !kemuUsed.Swap(true) {
		go kemuHear()
	}
	if kemuTold == 0 || end < kemuTold {
		kemuTell()
	}
}

func kemuForget(t *Timer) {
	if !kemuUsed.Load() {
		return
	}
	kemuLock.Lock()
	defer kemuLock.Unlock()
	end, found := kemuEnds[t]
	delete(kemuEnds, t)
	if found && end.at == kemuTold {
		kemuTell()
	}
}

// kemuTell says when the first timer ends, in nanoseconds since 1970; 0: there is none.
func kemuTell() {
	first := int64(kemuNever)
	for _, end := range kemuEnds {
		first = min(first, end.at)
	}
	if first == kemuNever {
		first = 0
	}
	if first == kemuTold {
		return
	}
	kemuTold = first
	var text [8]byte
	for i := range text {
		text[i] = byte(first >> (8 * i))
	}
	syscall.Write(kemuLine, text[:])
}

// kemuHear waits for the times that it has told.
func kemuHear() {
	for {
		var text [8]byte
		size, err := syscall.Read(kemuLine, text[:])
		if err == syscall.EINTR {
			continue
		}
		if err != nil || size < len(text) {
			return
		}
		var now int64
		for i, one := range text {
			now |= int64(one) << (8 * i)
		}
		kemuLock.Lock()
		for t, end := range kemuEnds {
			if end.at > now {
				continue
			}
			if end.period > 0 {
				kemuEnds[t] = kemuEnd{now + end.period, end.period}
			} else {
				delete(kemuEnds, t)
			}
			resetTimer(t, runtimeNano(), 0)
		}
		kemuTell()
		kemuLock.Unlock()
	}
}
"""


def write(folder: Path) -> Path:
    """Returns the file for ``go build -overlay``. Raises RuntimeError for a Go that looks different."""
    root = subprocess.run(["go", "env", "GOROOT"], capture_output=True, text=True, check=True).stdout.strip()
    folder.mkdir(parents=True, exist_ok=True)
    replaced = {}
    for name, changes in _CHANGES.items():
        original = Path(root) / "src" / name
        text = original.read_text()
        for before, after in changes:
            if text.count(before) != 1:
                raise RuntimeError(f"{original}: has not once what this replaces: {before.strip()}")
            text = text.replace(before, after)
        changed = folder / name.replace("/", "_")
        changed.write_text(text)
        replaced[str(original)] = str(changed.resolve())
    added = folder / "kemu_clock.go"
    added.write_text(_SOURCE)
    replaced[str(Path(root) / "src/time" / added.name)] = str(added.resolve())
    overlay = folder / "overlay.json"
    overlay.write_text(json.dumps({"Replace": replaced}))
    return overlay.resolve()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: go_overlay.py FOLDER")
    print(write(Path(sys.argv[1])))
