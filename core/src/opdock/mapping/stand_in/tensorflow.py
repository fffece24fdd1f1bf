"""What `import tensorflow` finds in a process that a program under `opdock run` has spawned.

Such a process gets the program's `sys.path`, with this folder in it, but not its import hook.
"""

import os
import sys

import opdock

del sys.modules[__name__]  # this file; the mapped module takes its place
if "OPDOCK_NO_LEGACY" not in os.environ:
    from opdock import legacy

    legacy.put_back()
opdock.install_as_tensorflow()
