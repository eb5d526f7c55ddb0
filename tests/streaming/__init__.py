"""Streams into a graph whose driver is killed at random, with everything that it started."""
