"""Texts of objects are those of their documents."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kemu.emulated.gateway.answers import documents, texts
from kemu.emulated.objects import events, resources
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.managed_fields import schemas
from tests.objects.generated_messages import messages

ROWS = [*resources.RESOURCES, events.ROW]


def _document(row: resources.Resource, message: Any) -> bytes:
    """What Go writes, by way of the documents."""
    data = convert.to_json(message)
    name = schemas.find(row.api_version, row.kind)
    return documents.text(data if name is None else schemas.as_go_writes(name, data))


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_the_text_of_an_object_is_that_of_its_document(data: st.DataObject) -> None:
    row = data.draw(st.sampled_from(ROWS))
    message = data.draw(messages(row.message))
    assert texts.of_object(row, message) == _document(row, message)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.api_version}/{row.kind}")
def test_an_object_without_anything(row: resources.Resource) -> None:
    message: Any = row.message()
    assert texts.of_object(row, message) == _document(row, message)
    message.metadata.SetInParent()
    message.metadata.managedFields.add().fieldsV1.Raw = b"no JSON"
    assert texts.of_object(row, message) == _document(row, message)
