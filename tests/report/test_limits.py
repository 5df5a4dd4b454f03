"""docs/limits.md tells what the tables say."""

from __future__ import annotations

from pathlib import Path

from kemu.emulated.kubelet.settings import kubelet_configurations
from kemu.emulated.objects.fields import scheduler_configuration, tables
from kemu.emulated.objects.fields.sorts import Parts, Refused
from kemu.lab.tell import limits

PAGE = Path(__file__).parents[2] / "docs" / "limits.md"


def test_the_page_is_up_to_date() -> None:
    _, _, rest = PAGE.read_text().partition("<!-- made by scripts/gendocs: limits -->\n")
    assert rest.partition("<!-- end -->")[0] == limits.made(), "run scripts/gendocs limits"


def test_every_field_and_every_reason_to_refuse_is_told() -> None:
    made = limits.made()
    sorts = {**tables.SORTS, **scheduler_configuration.SORTS, **kubelet_configurations.SORTS}
    for key, sort in sorts.items():
        name = key.rpartition(".")[2] if key in tables.SORTS else key
        assert isinstance(sort, Parts) or f"`{name}`" in made, key
        if isinstance(sort, Refused):
            assert (f"the feature gate `{sort.gate}`" if sort.gate else sort.why) in made, key
