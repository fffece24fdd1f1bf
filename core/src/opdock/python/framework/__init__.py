"""TF's place of the framework modules."""
