"""Shows, runs and scans SavedModels: TensorFlow's `saved_model_cli`."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from opdock import errors
from opdock.graph.nodes.graph import Graph
from opdock.io import protos
from opdock.io.files import atomic_write
from opdock.runtime.session import Session
from opdock.saved_model import loader
from opdock.tools import saved_model_utils
from opdock.tools.saved_model_inputs import load_inputs_from_input_arg_string
from opdock.tools.saved_model_utils import get_meta_graph_def
from opdock.train.meta_graph import ops_used_by_graph_def

__all__ = [
    "create_parser", "get_meta_graph_def", "get_signature_def_map",
    "load_inputs_from_input_arg_string", "main", "run", "run_saved_model_with_feed_dict", "scan",
    "scan_meta_graph_def", "show",
]  # fmt: skip

# Ops by which a model that somebody else made reaches files or the terminal.
_OP_BLACKLIST = {"WriteFile", "ReadFile", "PrintV2"}


# ---------------------------------------------------------------- show
def get_signature_def_map(saved_model_dir: Any, tag_set: str) -> Any:
    """The signatures of a meta graph, by name; RuntimeError when there is no such meta graph."""
    return get_meta_graph_def(saved_model_dir, tag_set).signature_def


def show(args: argparse.Namespace) -> None:
    """Prints as much of a model as the arguments ask for."""
    if args.json:
        print(json.dumps(_described(args), indent=2))
    elif args.all:
        _show_all(args.dir)
    elif args.tag_set is None:
        found = saved_model_utils.get_saved_model_tag_sets(args.dir)
        print("The given SavedModel contains the following tag-sets:")
        for tags in sorted(found):
            print(", ".join(sorted(tags)))
    elif args.signature_def is None:
        keys = sorted(get_signature_def_map(args.dir, args.tag_set))
        print("The given SavedModel MetaGraphDef contains SignatureDefs with the following keys:")
        for key in keys:
            print(f'SignatureDef key: "{key}"')
    else:
        signatures = get_signature_def_map(args.dir, args.tag_set)
        _show_signature(_named(signatures, args.signature_def), "")


def _described(args: argparse.Namespace) -> dict[str, Any]:
    """Every signature that the arguments ask for, by tags and by name."""
    tag_sets = [args.tag_set] if args.tag_set is not None else sorted(
        ",".join(tags) for tags in saved_model_utils.get_saved_model_tag_sets(args.dir)
    )  # fmt: skip
    found = {}
    for tags in tag_sets:
        signatures = get_signature_def_map(args.dir, tags)
        wanted = sorted(signatures) if args.signature_def is None else [args.signature_def]
        found[tags] = {key: _signature(_named(signatures, key)) for key in wanted}
    return found


def _named(signatures: Any, key: str) -> Any:
    """A signature; ValueError where a model has none of this name."""
    if key not in signatures:
        known = ", ".join(sorted(signatures))
        raise ValueError(f"the model has no signature {key!r}; it has {known or 'none'}")
    return signatures[key]


def _signature(signature: Any) -> dict[str, Any]:
    ends = {"inputs": signature.inputs, "outputs": signature.outputs}
    return {"method": signature.method_name} | {
        what: {key: _tensor_info(info) for key, info in sorted(infos.items())}
        for what, infos in ends.items()
    }


def _tensor_info(info: Any) -> dict[str, Any]:
    shape = info.tensor_shape
    return {
        "dtype": protos.DataType.Name(info.dtype), "name": info.name,
        "shape": None if shape.unknown_rank else [dim.size for dim in shape.dim],
    }  # fmt: skip


def _show_all(directory: Any) -> None:
    for tags in sorted(saved_model_utils.get_saved_model_tag_sets(directory)):
        print(
            f"\nMetaGraphDef with tag-set: '{', '.join(tags)}' contains the following"
            " SignatureDefs:"
        )
        signatures = get_signature_def_map(directory, ",".join(tags))
        for key in sorted(signatures):
            print(f"\nsignature_def['{key}']:")
            _show_signature(signatures[key], "  ")


def _show_signature(signature: Any, indent: str) -> None:
    for what, infos in (("input", signature.inputs), ("output", signature.outputs)):
        print(f"{indent}The given SavedModel SignatureDef contains the following {what}(s):")
        for key, info in sorted(infos.items()):
            print(f"{indent}  {what}s['{key}'] tensor_info:")
            _print_tensor_info(info, len(indent) // 2)
    print(f"{indent}Method name is: {signature.method_name}")


def _print_tensor_info(tensor_info: Any, indent: int = 0) -> None:
    shape = "unknown_rank"
    if not tensor_info.tensor_shape.unknown_rank:
        sizes = ", ".join(str(dim.size) for dim in tensor_info.tensor_shape.dim)
        shape = f"({sizes})"
    space = "  " * (indent + 3)
    print(f"{space}dtype: {protos.DataType.Name(tensor_info.dtype)}")
    print(f"{space}shape: {shape}")
    print(f"{space}name: {tensor_info.name}")


# ---------------------------------------------------------------- run
def run_saved_model_with_feed_dict(
    saved_model_dir: Any, tag_set: str, signature_def_key: str,
    input_tensor_key_feed_dict: dict[str, Any], outdir: Any, overwrite_flag: bool,
    worker: str | None = None, init_tpu: bool = False, tf_debug: bool = False,
) -> None:  # fmt: skip
    """Runs a signature and prints its outputs.

    Args:
        saved_model_dir: the model's directory.
        tag_set: the tags of the meta graph, with commas between them.
        signature_def_key: the signature's name.
        input_tensor_key_feed_dict: values by the signature's input names.
        outdir: directory in which to write each output as an .npy file, if any.
        overwrite_flag: replace files that exist.
        worker: target of the session.
        init_tpu: there is no TPU here.
        tf_debug: TF's debugger is not here.

    Raises:
        ValueError: there is no such signature, or it has no such input.
        RuntimeError: a file exists.
        UnimplementedError: `init_tpu` or `tf_debug` is set.
    """
    if init_tpu or tf_debug:
        what, why = (
            ("init_tpu", "no plugin has TPUs that need it") if init_tpu else
            ("tf_debug", "TensorFlow's debugger in a terminal is no part of opdock")
        )  # fmt: skip
        raise errors.UnimplementedError(None, None, f"saved_model_cli run --{what}: {why}")
    signatures = get_signature_def_map(saved_model_dir, tag_set)
    signature = _named(signatures, signature_def_key)
    for key in input_tensor_key_feed_dict:
        if key not in signature.inputs:
            known = '", "'.join(signature.inputs)
            raise ValueError(
                f'"{key}" is not a valid input key. Please choose from "{known}", or use --show'
                " option."
            )
    feeds = {signature.inputs[k].name: v for k, v in input_tensor_key_feed_dict.items()}
    keys = sorted(signature.outputs)
    with Session(worker or "", graph=Graph()) as sess:
        loader.load(sess, tag_set.split(","), saved_model_dir)
        outputs = sess.run([signature.outputs[key].name for key in keys], feed_dict=feeds)
    for key, output in zip(keys, outputs, strict=True):
        print(f"Result for output key {key}:\n{output}")
        if outdir:
            _write(os.path.join(outdir, f"{key}.npy"), key, output, overwrite_flag)


def _write(path: str, key: str, output: Any, overwrite: bool) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not overwrite and os.path.exists(path):
        raise RuntimeError(
            f'Output file {path} already exists. Add "--overwrite" to overwrite the existing output'
            " files."
        )
    array = np.asarray(output)
    # Strings have a fixed width in the file: objects would need pickle.
    with atomic_write(path) as file:
        np.save(file, array.astype(np.bytes_) if array.dtype == object else array)
    print(f"Output {key} is saved to {path}")


class _NoInputs(AttributeError, ValueError):
    """A signature is to be run on nothing: an AttributeError, as TensorFlow's tool raises it."""


def run(args: argparse.Namespace) -> None:
    """Runs a signature with the inputs that the arguments give."""
    if not (args.inputs or args.input_exprs or args.input_examples):
        raise _NoInputs(
            "At least one of --inputs, --input_exprs or --input_examples must be required"
        )
    feeds = load_inputs_from_input_arg_string(args.inputs, args.input_exprs, args.input_examples)
    run_saved_model_with_feed_dict(
        args.dir, args.tag_set, args.signature_def, feeds, args.outdir, args.overwrite,
        worker=args.worker, init_tpu=args.init_tpu, tf_debug=args.tf_debug,
    )  # fmt: skip


# ---------------------------------------------------------------- scan
def scan_meta_graph_def(meta_graph_def: Any) -> None:
    """Says which ops of a meta graph reach out of the session."""
    tags = meta_graph_def.meta_info_def.tags
    found = _OP_BLACKLIST & set(ops_used_by_graph_def(meta_graph_def.graph_def))
    if found:
        print(f"MetaGraph with tag set {tags} contains the following blacklisted ops: {found}")
    else:
        print(f"MetaGraph with tag set {tags} does not contain blacklisted ops.")


def scan(args: argparse.Namespace) -> None:
    """Scans one meta graph of a model, or all."""
    if args.tag_set:
        scan_meta_graph_def(get_meta_graph_def(args.dir, args.tag_set))
        return
    for meta in saved_model_utils.read_saved_model(args.dir).meta_graphs:
        scan_meta_graph_def(meta)


# ---------------------------------------------------------------- command line
def create_parser(prog: str = "saved_model_cli") -> argparse.ArgumentParser:
    """The parser of the command line, which names the function of each command as `func`."""
    parser = argparse.ArgumentParser(prog=prog, description=__doc__)
    parser.add_argument("-v", "--version", action="version", version="0.1.0")
    commands = parser.add_subparsers(title="commands", description="valid commands")
    tags = "tags of the meta graph, separated by ','"

    def added(name: str, description: str, example: str) -> argparse.ArgumentParser:
        return commands.add_parser(
            name, description=description, epilog=f"Example:\n  {prog} {name} {example}",
            formatter_class=argparse.RawDescriptionHelpFormatter, help=description,
        )  # fmt: skip

    shown = added("show", "Print tags, signatures, inputs and outputs.", "--dir model --all")
    shown.add_argument("--dir", required=True, help="directory of the SavedModel")
    shown.add_argument("--all", action="store_true", help="print all there is")
    shown.add_argument("--tag_set", help=tags)
    shown.add_argument("--signature_def", metavar="SIGNATURE_DEF_KEY", help="name of a signature")
    shown.add_argument("--json", action="store_true", help="print the signatures as JSON")
    shown.set_defaults(func=show)

    ran = added(
        "run", "Run a signature and print its outputs.",
        "--dir model --tag_set serve --signature_def serving_default "
        "--input_exprs 'x=np.ones((1, 4))'",
    )  # fmt: skip
    ran.add_argument("--dir", required=True, help="directory of the SavedModel")
    ran.add_argument("--tag_set", required=True, help=tags)
    ran.add_argument("--signature_def", required=True, metavar="SIGNATURE_DEF_KEY")
    for name, text in (
        ("--inputs", "KEY=FILE or KEY=FILE[NAME], separated by ';'; .npy or .npz files"),
        ("--input_exprs", "KEY=EXPRESSION, separated by ';'; `np` is NumPy"),
        ("--input_examples", "KEY=[{FEATURE: [VALUES]}], separated by ';'"),
    ):
        ran.add_argument(name, default="", help=text)
    ran.add_argument("--outdir", help="directory to write the outputs to, as .npy files")
    ran.add_argument("--overwrite", action="store_true", help="replace files that exist")
    ran.add_argument("--tf_debug", action="store_true", help="not available")
    ran.add_argument("--worker", help="target of the session")
    ran.add_argument("--init_tpu", action="store_true", default=None, help="not available")
    ran.set_defaults(func=run)

    scanned = added("scan", "Look for ops that reach out of the session.", "--dir model")
    scanned.add_argument("--dir", required=True, help="directory of the SavedModel")
    scanned.add_argument("--tag_set", help=tags)
    scanned.set_defaults(func=scan)
    return parser


def main(argv: Iterable[str] | None = None) -> None:
    """Runs the tool."""
    parser = create_parser()
    args = parser.parse_args(None if argv is None else list(argv))
    if not hasattr(args, "func"):
        parser.error("too few arguments")
    args.func(args)


if __name__ == "__main__":
    main()
