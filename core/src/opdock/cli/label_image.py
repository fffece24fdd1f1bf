"""`opdock label-image`: what a classifier sees in an image."""

from __future__ import annotations

from opdock.cli._tool import tool

command = tool("label-image", "label_image")
