"""What `import tensorflow` finds in a process that a program under `opdock run` has spawned.

Such a process gets the program's `sys.path`, with this folder in it, but not its import hook.
"""

import sys

import opdock
from opdock.util.switches import switched_on

del sys.modules[__name__]  # this file; the mapped module takes its place
if not switched_on("OPDOCK_NO_LEGACY"):
    from opdock import legacy

    legacy.put_back()
opdock.install_as_tensorflow()
