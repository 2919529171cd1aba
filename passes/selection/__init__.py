"""Passes that choose storage."""
