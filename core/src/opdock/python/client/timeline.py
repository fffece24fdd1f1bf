"""TF's place of `opdock.timeline`."""

from opdock.timeline import StepStatsAnalysis, Timeline

__all__ = ["StepStatsAnalysis", "Timeline"]
