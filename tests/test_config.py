"""Settings come from the environment, each by its own variable, and a senseless value is refused by name."""

import dataclasses

import pytest

from omnigraph.config import Settings, override, parse_duration, parse_size, read_settings, settings
from omnigraph.errors import BadRequest


def test_defaults_hold_without_an_environment():
    assert read_settings({}) == Settings()
    assert Settings().publisher_retry_budget == 5
    assert Settings().cleanup_grace == 7 * 24 * 3600


def test_every_setting_has_its_own_variable():
    variables = [entry.metadata["variable"] for entry in dataclasses.fields(Settings)]
    assert len(set(variables)) == len(variables)
    assert all(name.startswith("OMNIGRAPH_") for name in variables)


def test_values_are_read_with_their_units():
    read = read_settings(
        {
            "OMNIGRAPH_CLEANUP_GRACE": "12h",
            "OMNIGRAPH_QUERY_MEMORY": "512MiB",
            "OMNIGRAPH_TRAVERSAL_MODE": "CSR",
            "OMNIGRAPH_MAINTENANCE_CONCURRENCY": " 3 ",
        }
    )
    assert (read.cleanup_grace, read.query_memory, read.traversal_mode) == (43200.0, 512 << 20, "csr")
    assert read.maintenance_concurrency == 3


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OMNIGRAPH_CLEANUP_GRACE", "soon"),
        ("OMNIGRAPH_ENGINE", "hadoop"),
        ("OMNIGRAPH_PUBLISHER_RETRY_BUDGET", "many"),
        ("OMNIGRAPH_MAINTENANCE_CONCURRENCY", "-1"),
        ("OMNIGRAPH_QUERY_MEMORY", "1 parsec"),
    ],
)
def test_a_senseless_value_names_its_variable(variable, value):
    with pytest.raises(BadRequest, match=variable):
        read_settings({variable: value})


def test_durations_and_sizes():
    assert [parse_duration(t) for t in ("90", "250ms", "1.5h", "2d")] == [90.0, 0.25, 5400.0, 172800.0]
    assert [parse_size(t) for t in ("10", "1k", "2GB", "1.5m")] == [10, 1024, 2 << 30, 3 << 19]


def test_override_ends_with_its_block():
    before = settings()
    with override(publisher_retry_budget=1):
        assert settings().publisher_retry_budget == 1
    assert settings() == before
