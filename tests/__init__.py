"""Tests of sparsecc."""
