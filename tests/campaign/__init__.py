"""A fault campaign as a tool: writers that are killed, paused and starved, damage and repair, for as long as one likes.

`python -m tests.campaign --minutes 60 [--store s3://bucket/prefix]` prints a report with counts and ends with 1 when a
promise was broken. What was acknowledged is noted in a journal outside the graph.
"""
