"""Conformance: one suite, run per device, against an oracle that is no backend.

``opdock conformance --device cpu:0`` and ``pytest --pyargs opdock.testing --device cpu:0`` run the
same cases.  What a device must pass follows from its kernel tables; what is right follows from
:mod:`opdock.testing.reference`; what is tried follows from :mod:`opdock.testing.samples`.
"""
