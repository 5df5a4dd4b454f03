"""Recorded cases in which kemu answers otherwise than Kubernetes, and why; a test holds that there are no others."""

from __future__ import annotations

_RECOVERY = "ANTLR goes on behind a syntax error that it cannot mend, and says more; kemu stops there"
_PROTOBUF = "kemu constructs no protobuf messages; no object of Kubernetes is one"
_PANIC = "cel-go panics; kemu finds nothing"
_NATIVE = "the message names Go's type of a map or a list, which depends on where it comes from"
_NAN = "a key that is NaN is found by iterating only"
_QUANTITY = "Go multiplies a decimal of any scale by an inexact power of ten"

DIFFERENCES = {
    "ExampleType{}.in": _RECOVERY,
    "1 + +": _RECOVERY,
    "a ? b ((?))": _RECOVERY,
    "format.%s() == format.%s()": _RECOVERY,
    "1 " * 300: _RECOVERY,
    "dyn(b'abc') in {1: 1}": _PANIC,
    "dyn(b'\\xff') in {1: 1}": _PANIC,
    "dyn(semver('1.2.3')) in {1: 1}": _PANIC,
    "dyn(format.dns1123Label()) in {1: 1}": _PANIC,
    "(x.m[x.m]).matches('^[a-z]*$')": _NATIVE,
    "((x.m[x.l]).find('[a-z]+'))"
    " in ((x.strs.transformMapEntry(v10, v11, {v11: 'x'})).transformMap(v8, v9, v9))": _NATIVE,
    "{double('NaN'): 1}": _NAN,
    "{dyn(double('NaN')): 1}": _NAN,
    "quantity('1.5Gi').add(quantity('100m')).asApproximateFloat()": _QUANTITY,
}


def reason(expression: str) -> str | None:
    """Why kemu may answer otherwise, or None if it may not."""
    if "google.protobuf.Timestamp{" in expression or "google.protobuf.Any{" in expression:
        return _PROTOBUF
    return DIFFERENCES.get(expression)
