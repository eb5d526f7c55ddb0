"""A session that does not start says why, not which call of Java failed."""

from __future__ import annotations

import socket

from omnigraph.spark.session.starting.not_started import why_not_started

OF_A_CALL = "An error occurred while calling None.org.apache.spark.sql.classic.SparkSession."


def test_a_master_that_does_not_answer_is_named() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]  # bound and not listening: nobody else takes it, and it refuses
        told = why_not_started(f"spark://127.0.0.1:{port}", RuntimeError(OF_A_CALL), "")
    assert told == f"no master answers at 127.0.0.1:{port}"
    assert why_not_started("spark://nonsense", RuntimeError("?"), "") == "no master answers at nonsense"


def test_one_master_that_answers_is_enough() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        there = f"127.0.0.1:{server.getsockname()[1]}"
        assert why_not_started(f"spark://nowhere.invalid:1,{there}", RuntimeError("no cores"), "") == "no cores"


def test_the_innermost_cause_is_told_without_the_noise_of_every_start() -> None:
    text = f"{OF_A_CALL}\n: java.lang.Outer: a\n\tat x.y(Z:1)\nCaused by: java.lang.Inner: b\n\tat x.y(Z:2)\n"
    noise = 'WARNING: Using incubator modules: jdk.incubator.vector\nSetting default log level to "OFF".\n'
    assert why_not_started("local[1]", RuntimeError(text), noise) == "java.lang.Inner: b"
    outer = "\n".join(text.splitlines()[:3])
    assert why_not_started("local[1]", RuntimeError(outer), noise + "no memory\n") == "java.lang.Outer: a\n  no memory"
    assert why_not_started("yarn", RuntimeError(""), "") == "RuntimeError"
