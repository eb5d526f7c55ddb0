"""Errors on the wire: one body for all of them, the status from the one table, and nothing of the inside."""

from __future__ import annotations

import logging
from typing import Any

import orjson
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from omnigraph.errors import (
    BadRequest,
    InternalError,
    MethodNotAllowed,
    NotFound,
    OmniGraphError,
    ResourceLimit,
    TooManyRequests,
    Unauthorized,
)

_logger = logging.getLogger("omnigraph.server")

RETRY_AFTER_SECONDS = 1


def error_response(error: Exception, request_id: str) -> Response:
    """The response to any error."""
    known = as_known(error, request_id)
    outcome = known.outcome
    content = known.to_json()
    if outcome.http_status == 500:
        _logger.error("request %s failed: %s", request_id, known.message, exc_info=error)
        if known.kind in ("internal", "storage"):
            content = InternalError(f"something went wrong here; the log has it under request {request_id}").to_json()
    content.setdefault("merge_conflicts", [])
    content["request_id"] = request_id
    headers = {}
    if outcome.http_status in (429, 503):
        headers["Retry-After"] = str(RETRY_AFTER_SECONDS)
    if outcome.http_status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if outcome.http_status == 405 and isinstance(error, HTTPException) and error.headers:
        headers.update(error.headers)
    return Response(encoded(content), outcome.http_status, headers, "application/json")


def as_known(error: Exception, request_id: str) -> OmniGraphError:
    """The error in the words of the family, whoever raised it."""
    if isinstance(error, OmniGraphError):
        return error
    if isinstance(error.__cause__, OmniGraphError) and isinstance(error, HTTPException):
        return error.__cause__  # the framework wraps whatever goes wrong while a body is read
    if isinstance(error, RequestValidationError):
        return _invalid(error)
    if isinstance(error, HTTPException):
        return _http(error)
    if isinstance(error, RecursionError):
        return BadRequest("the request is nested too deeply")
    return InternalError(f"unexpected {type(error).__name__}: {error} (request {request_id})")


def encoded(content: Any) -> bytes:
    """JSON; what is no JSON value, such as a moment in the details of an error, as its text."""
    return orjson.dumps(content, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z, default=_shown)


def _shown(value: Any) -> Any:
    to_json = getattr(value, "to_json", None)
    if callable(to_json):
        return to_json()
    if isinstance(value, frozenset | set | tuple):
        return sorted(value)
    return str(value)


def _http(error: HTTPException) -> OmniGraphError:
    match error.status_code:
        case 401:
            return Unauthorized(str(error.detail))
        case 404:
            return NotFound("there is nothing under this path; /openapi.json lists what there is")
        case 405:
            return MethodNotAllowed("this path does not take this method; /openapi.json lists what it takes")
        case 413:
            return ResourceLimit(str(error.detail))
        case 429:
            return TooManyRequests(str(error.detail))
        case status if status < 500:
            return BadRequest(str(error.detail))
        case _:
            return InternalError(str(error.detail))


def _invalid(error: RequestValidationError) -> BadRequest:
    """What is wrong with a request, by the place of each problem."""
    found = []
    for problem in error.errors()[:10]:
        if problem["loc"] == ("body",) and isinstance(problem.get("input"), bytes):
            return BadRequest("the body is taken as JSON only where it says so: send `Content-Type: application/json`")
        place = ".".join(str(part) for part in problem["loc"] if part != "body") or "the body"
        cause = problem.get("ctx", {}).get("error")
        own_words = problem["type"] == "value_error" and cause is not None
        found.append(str(cause) if own_words else f"{place}: {problem['msg']}{f' ({cause})' if cause else ''}")
    return BadRequest(f"the request makes no sense: {'; '.join(found)}", problems=found)
