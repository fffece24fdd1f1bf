"""Devices: what a backend's device must do, the pool of a session, and copies between devices."""
