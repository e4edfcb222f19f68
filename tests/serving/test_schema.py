"""Every route under what its schema allows and forbids: always an answer that the schema knows, never a 500."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from running import Running
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from every_task import TINY

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
EXAMPLES = 25  # of each operation, allowed and forbidden
FITTING = {"/v1/completions": "writer", "/v1/embeddings": "vectors"}
slowly_and_always_the_same = settings(
    max_examples=EXAMPLES, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck)
)


@pytest.fixture
def operations(server: Running) -> list[Any]:
    described: Any = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    return [operation.ok() for operation in described.get_all_operations()]


def test_whatever_is_asked_the_answer_is_one_that_the_schema_knows(operations: list[Any]) -> None:
    answered: defaultdict[str, set[int]] = defaultdict(set)

    def ask(case: Case[Any], name: str | None, is_minimal: bool) -> None:
        aim(case, name)
        if is_minimal and case.path == "/look/{model}" and isinstance(case.body, dict) and "input" in case.body:
            case.body = {"input": case.body["input"]}  # options that are made up hardly ever fit a model and a text
        answer = case.call_and_validate(checks=CHECKS)
        assert "Traceback" not in answer.text
        answered[case.operation.label].add(answer.status_code)

    for operation in operations:
        forbids = operation.body or operation.query  # a name in a path may be any
        for mode in GenerationMode if forbids else [GenerationMode.POSITIVE]:
            section = operation.as_strategy(generation_mode=mode)
            slowly_and_always_the_same(
                given(case=section, name=st.sampled_from([None, *TINY]), is_minimal=st.booleans())(ask)
            )()

    successful = {operation.label for operation in operations if "200" in operation.responses.status_codes}
    assert successful == {label for label, statuses in answered.items() if 200 in statuses}


def aim(case: Case[Any], name: str | None) -> None:
    """Ask a model that there is, for what it can do: made-up names get no further than 404."""
    if name is None:
        return
    valid_values = {"model": FITTING.get(case.path, name), "source": "en", "target": "ko"}
    for section in (case.path_parameters, case.query, case.body):
        if isinstance(section, dict):
            section.update({key: value for key, value in valid_values.items() if key in section})
