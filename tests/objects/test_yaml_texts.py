"""YAML of foreign_files."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest
import yaml

from kemu.emulated.objects.conversion import yaml_texts

LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(20)
)


def test_usual_documents_are_read() -> None:
    text = b"kind: Pod\nspec: &s\n  a: [1, 2.5, yes, ~, 2020-01-01]\nother: *s\n"
    spec = {"a": [1, 2.5, True, None, "2020-01-01"]}
    assert yaml_texts.load(text) == ({"kind": "Pod", "spec": spec, "other": spec}, [])
    assert yaml_texts.load(b'{"kind": "Pod", "n": 1}') == ({"kind": "Pod", "n": 1}, [])
    assert yaml_texts.load(b"{kind: Pod}") == ({"kind": "Pod"}, [])
    assert yaml_texts.load(b"") == (None, [])


@pytest.mark.parametrize("text", [b"a: 1\nb: 2\na: 3\n", b'{"b": 1,\n"a": 2,\n"a": 3}'])
def test_keys_that_stand_twice_are_told(text: bytes) -> None:
    found, twice = yaml_texts.load(text)
    assert found["a"] == 3
    assert twice == ['line 3: key "a" already set in map']


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (LAUGHS, "excessive aliasing"),
        ("[" * 101 + "]" * 101, "max depth"),
        ("- " * 200 + "a", "max depth"),
        ("a: &a [*a]", "contains itself"),
        ("a: *b", "b"),
        ("!!python/object/apply:os.system ['true']", "python"),
        ("a: 1\n---\nb: 2", "document"),
        ("a: [", "expected"),
    ],
)
def test_what_is_no_plain_document_is_refused_soon(text: str, why: str) -> None:
    begun = time.process_time()
    with pytest.raises((yaml.YAMLError, ValueError, RecursionError), match=why):
        yaml_texts.load(text.encode())
    assert time.process_time() - begun < 5


def test_the_deepest_document_does_not_end_the_process() -> None:
    code = "from kemu.emulated.objects.conversion import yaml_texts; yaml_texts.load(b'[' * 3_000_000)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert "max depth" in done.stderr
