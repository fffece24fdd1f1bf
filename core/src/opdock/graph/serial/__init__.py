"""Graphs as protobufs, out and in."""
