"""A plugin for pytest: absl's flags have their defaults, as where a file of tests is run itself."""

from absl import flags

flags.FLAGS.mark_as_parsed()
