"""The message of files that pprof reads, as its `profile.proto` numbers the fields."""

from __future__ import annotations

from typing import Any

from opdock.io.proto_builder import build

_MESSAGES = {
    "ValueType": "type:int64=1 unit:int64=2",
    "Sample": "location_id:uint64*=1 value:int64*=2",
    "Line": "function_id:uint64=1 line:int64=2",
    "Location": "id:uint64=1 line:Line*=4",
    "Function": "id:uint64=1 name:int64=2 system_name:int64=3 filename:int64=4 start_line:int64=5",
    "Profile": "sample_type:ValueType*=1 sample:Sample*=2 location:Location*=4 function:Function*=5"
    " string_table:string*=6",
}

Profile: Any = build("opdock/io/pprof_messages.proto", "opdock.pprof", _MESSAGES)["Profile"]
"""A profile: samples, each with the calls that led to it, innermost first."""
