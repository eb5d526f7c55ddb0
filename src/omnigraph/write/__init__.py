"""Staging, validation, mutation, load, schema apply."""
