"""The errors that are opdock's own, by stable codes: what each means and what to do about it.

An error that TensorFlow has too keeps TensorFlow's words and has no code. A code stands at the end
of the first line of a message, `[OPD-PLACE-002]`; it never changes its meaning, and
docs/reference/errors.md has a section for each.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from opdock.late import record

__all__ = ["CODES", "OF_KIND", "Code", "coded", "of_kind"]


@record(frozen=True, slots=True)
class Code:
    """What is known of a code.

    Attributes:
        title: what has happened, in a few words.
        meaning: when it is raised, as which class.
        remedy: what to do about it.
    """

    title: str
    meaning: str
    remedy: str


def coded(code: str, text: str) -> str:
    """A message with a code at the end of its first line.

    Raises:
        KeyError: the code is not in `CODES`.
    """
    assert CODES[code]
    head, newline, rest = text.partition("\n")
    return f"{head} [{code}]{newline}{rest}"


CODES: Final = MappingProxyType({
    # ------------------------------------------------------------ placement
    "OPD-PLACE-001": Code(
        "No such device",
        "`InvalidArgumentError`, when a program is compiled: a node asks for a device that the "
        "session does not have, and soft placement is off.",
        "`opdock devices` lists what there is. Install the plugin of the device, name another one, "
        "or switch `allow_soft_placement` on.",
    ),
    "OPD-PLACE-002": Code(
        "No device has a kernel",
        "`InvalidArgumentError`, when a program is compiled: every kernel has declined the node; "
        "the lines below tell the reason of each.",
        "Most reasons name an element type or an attribute: cast, or change the attribute. "
        "`opdock explain --rejections` shows the same for a whole graph.",
    ),
    "OPD-PLACE-003": Code(
        "The device of a node was lost before",
        "`UnavailableError`, when a program is compiled: a node asks for a device that an earlier "
        "step lost, and soft placement is off.",
        "Make a new session, or switch `allow_soft_placement` on.",
    ),
    "OPD-PLACE-004": Code(
        "No other kernel could take over",
        "The error of the kernel that gave up while a step ran, `UnimplementedError` or "
        "`ResourceExhaustedError`; the lines below say why each other one could not do it.",
        "Out of memory everywhere: smaller batches. Otherwise as for OPD-PLACE-002.",
    ),
    "OPD-PLACE-005": Code(
        "There is no device at all",
        "`NotFoundError`, when a session runs or lists devices: no plugin has a device, or the "
        "session's `device_filters` leave none.",
        '`pip install "opdock-cpu"`; `opdock doctor` says what became of each plugin.',
    ),
    # ------------------------------------------------------------ devices
    "OPD-DEVICE-001": Code(
        "A device was lost",
        "`UnavailableError`, while a step ran: the backend says that the device is gone, and with "
        "it the values of its variables.",
        "Restore a checkpoint. Under soft placement steps without lost variables go on elsewhere.",
    ),
    "OPD-DEVICE-002": Code(
        "No room for a result on its device",
        "`ResourceExhaustedError`, while a step ran: another device computed what this one could "
        "not, and there is no room to bring it back.",
        "Smaller batches, or fewer variables on the device.",
    ),
    "OPD-DEVICE-003": Code(
        "A device cannot be opened",
        "`PluginError`, or `UnavailableError` in a session: the plugin found the device, and "
        "failed to open it.",
        "The message has the plugin's own words; `opdock doctor --open --traceback` shows where.",
    ),
    # ------------------------------------------------------------ kernels
    "OPD-KERNEL-001": Code(
        "A kernel failed in a way that has no TensorFlow error",
        "`InternalError`, while a step ran or was bound: code of a plugin raised something else "
        "than `tf.errors`.",
        "A defect of the plugin that is named, or of what computed its inputs, which "
        "`OPDOCK_CHECK=1` looks at: `Session.bisect` makes a file of it to report.",
    ),
    "OPD-KERNEL-002": Code(
        "What a plugin gave is wrong",
        "`InternalError`, with `OPDOCK_CHECK=1`: a kernel, a copy or a device gave another type or "
        "shape than it has promised, or changed its input.",
        "A defect of the plugin that is named.",
    ),
    # ------------------------------------------------------------ plugins
    "OPD-PLUGIN-001": Code(
        "A plugin cannot be imported",
        "Quarantine `import-error`: importing it raised, or there is none of this name.",
        "`opdock doctor --traceback` shows where. Install what it lacks.",
    ),
    "OPD-PLUGIN-002": Code(
        "A plugin yields something of a wrong kind",
        "Quarantine `wrong-type`: a hook yields other records than it should, or is none.",
        "A defect of the plugin; the plugin hooks say what is expected.",
    ),
    "OPD-PLUGIN-003": Code(
        "A plugin is for a newer opdock",
        "Quarantine `api-too-new`: it asks for a later version of the plugin API.",
        "`pip install --upgrade opdock-core`.",
    ),
    "OPD-PLUGIN-004": Code(
        "A plugin is for an older opdock",
        "Quarantine `api-too-old`: it was made for an earlier major version of the plugin API.",
        "Upgrade the plugin.",
    ),
    "OPD-PLUGIN-005": Code(
        "A plugin implements a hook that there is not",
        "Quarantine `unknown-hook`.",
        "A misspelt name, most often: the message has the nearest.",
    ),
    "OPD-PLUGIN-006": Code(
        "Two plugins claim the same",
        "Quarantine `duplicate`: of two plugins that own one type, name or op one stays.",
        "Uninstall one, or name it in `OPDOCK_DISABLE`.",
    ),
    "OPD-PLUGIN-007": Code(
        "A plugin fails where it looks for devices",
        "Quarantine `probe-crashed`: its probe raised.",
        "`opdock doctor --traceback` shows where.",
    ),
    "OPD-PLUGIN-008": Code(
        "A plugin takes too long to look for devices",
        "Quarantine `probe-timeout`: its probe gave no answer in time.",
        "`OPDOCK_PROBE_TIMEOUT` gives it more seconds.",
    ),
    "OPD-PLUGIN-009": Code(
        "A plugin is switched off",
        "Quarantine `blocked`: `OPDOCK_DISABLE` names it, or `OPDOCK_PLUGINS` does not.",
        "Change that variable if it was not meant.",
    ),
    # ------------------------------------------------------------ TensorFlow's names
    "OPD-NAME-001": Code(
        "A public name that opdock does not cover yet",
        "`AttributeError`, or `ImportError` in a `from` import.",
        "The coverage page says what is planned; `opdock check` finds all such names of a program.",
    ),
    "OPD-NAME-002": Code(
        "A name that opdock leaves out",
        "`AttributeError`, `ImportError`, or `UnimplementedError` where a stand-in is called.",
        "The message has the reason, and what to use instead if there is anything.",
    ),
    "OPD-NAME-003": Code(
        "An internal name that is not mapped",
        "`AttributeError` or `ImportError`: of TensorFlow's internal modules those are mapped that "
        "programs use.",
        "Use the public name, if there is one.",
    ),
    "OPD-NAME-004": Code(
        "TensorFlow itself is imported already",
        "`ImportError`: two TensorFlows in one process would be mixed.",
        "Call `opdock.install_as_tensorflow()` before anything imports tensorflow, or use "
        "`opdock run`.",
    ),
    # ------------------------------------------------------------ clusters
    "OPD-CLUSTER-001": Code(
        "Tasks of other processes cannot be reached",
        "`UnimplementedError`: no cluster engine is installed.",
        "`pip install opdock-ray`.",
    ),
    "OPD-CLUSTER-002": Code(
        "This works in one task only",
        "`UnimplementedError`: the session has a target, so that its steps may span several tasks.",
        "Run it in a session without a target.",
    ),
})  # fmt: skip

OF_KIND: Final = MappingProxyType({
    "import-error": "OPD-PLUGIN-001", "wrong-type": "OPD-PLUGIN-002",
    "api-too-new": "OPD-PLUGIN-003", "api-too-old": "OPD-PLUGIN-004",
    "unknown-hook": "OPD-PLUGIN-005", "duplicate": "OPD-PLUGIN-006",
    "probe-crashed": "OPD-PLUGIN-007", "probe-timeout": "OPD-PLUGIN-008",
    "blocked": "OPD-PLUGIN-009", "open-failed": "OPD-DEVICE-003",
})  # fmt: skip
"""The codes of the kinds of quarantine."""


def of_kind(kind: str, text: str) -> str:
    """A message about a plugin that is in quarantine, with the code of the kind, if it has one."""
    return coded(OF_KIND[kind], text) if kind in OF_KIND else text
