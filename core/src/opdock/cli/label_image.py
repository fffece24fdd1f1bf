"""`opdock label-image`: what a classifier sees in an image."""

from __future__ import annotations

from opdock.cli._tool import tool

command = tool(
    "label-image",
    "label_image",
    help="Say what a classifier sees in an image.",
    example="opdock label-image --graph=classifier.pb --labels=labels.txt "
    "--image=images/red/0.png --input_layer=x --output_layer=y --input_height=8 "
    "--input_width=8",
    keys={"label": "its line in --labels", "index": "which output", "score": "its value"},
    each="label, best first",
    found="--self_test fails",
)
