"""TF's place of `opdock.api.timeline`."""

from opdock.api.timeline import StepStatsAnalysis, Timeline

__all__ = ["StepStatsAnalysis", "Timeline"]
