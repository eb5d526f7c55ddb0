"""Tests of stored texts and their vectors."""
