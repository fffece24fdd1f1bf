"""Lets programs that import `tensorflow` run on opdock, in this process alone.

`tf115.txt` lists the names of TensorFlow 1.15's interface, `tf115_modules.txt` those of its
internal tree, and `names.py` reads them. `tables.py` says where opdock has what they mean,
`resolve.py` finds one name, `modules.py` and `finder.py` make the modules that programs import.
`removed.py` has the names that TensorFlow gave up before 1.0, `missing.py` what is said of a name
that is not there.
"""

from opdock.mapping.finder import RealTensorFlowError, install_as_tensorflow

__all__ = ["RealTensorFlowError", "install_as_tensorflow"]
