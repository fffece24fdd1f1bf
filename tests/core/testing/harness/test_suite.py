"""The suite finds what is wrong: a backend with known faults, and the report that tells of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import opdock.plugin as api
from opdock.cli.conformance import command
from opdock.testing.harness import suite
from opdock.testing.levels.device import DeviceUnderTest, open_device
from opdock.testing.report.render import badge, markdown
from opdock.testing.report.report import Report

F32 = frozenset({api.as_dtype("float32")})
table = api.KernelTable()


class FaultyDevice(api.BaseDevice):
    """Host arrays; `upload` keeps the caller's array, which it must not."""

    dtypes = F32

    def upload(self, array: Any) -> Any:
        if array.dtype != np.float32:
            raise api.errors.UnimplementedError(None, None, f"no {array.dtype}")
        return array

    def download(self, buffer: Any) -> Any:
        return np.array(buffer, order="C")


def probe() -> api.Probe:
    return api.Probe(devices=(api.DeviceAttributes(index=0, description="faulty"),))


@table.binder("Neg", T=F32)
def neg(sig: Any) -> Any:
    return np.negative


@table.binder("Abs", T=F32)
def wrong_values(sig: Any) -> Any:
    return lambda x: np.abs(x) + np.float32(1)


@table.binder("Square", T=F32)
def wrong_dtype(sig: Any) -> Any:
    return lambda x: np.square(x).astype(np.float64)


@table.binder("Sqrt", T=F32)
def known_bug(sig: Any) -> Any:
    return lambda x: x


@table.binder("Exp", T=F32)
def fixed_bug(sig: Any) -> Any:
    return np.exp


@table.binder("Tanh", T=F32)
def unsupported(sig: Any) -> Any:
    return lambda x: x


@table.binder("Sigmoid", T=F32, when=lambda sig: "it declines everything")
def never(sig: Any) -> Any:
    return lambda x: x


@table.binder("Log", T=F32, when=lambda sig: len(sig.in_shapes[0]) < 3 or "rank three and more")
def low_ranks(sig: Any) -> Any:
    def run(x: Any) -> Any:
        with np.errstate(all="ignore"):
            return np.log(x)

    return run


@table.kernel("Ceil", Tidx=F32)
def unknown_attribute(ctx: Any, x: Any) -> Any:
    return np.ceil(x)


@table.kernel("NoSuchOp")
def unknown(ctx: Any) -> Any:
    return None


@api.hookimpl
def opdock_backends() -> Iterator[api.BackendSpec]:
    yield api.BackendSpec(
        name="faulty", device_type="FAULTY", own_type="FAULTY", api=(1, 0), priority=-50,
        probe=f"{__name__}:probe", device=f"{__name__}:FaultyDevice",
        kernels=(f"{__name__}:table",), automatic=False,
    )  # fmt: skip


@api.hookimpl
def opdock_requirements(backend: str) -> Iterator[api.Requirement]:
    if backend == "faulty":
        yield api.Requirement(name="Sqrt", status="bug", reason="off", issue="#1")
        yield api.Requirement(name="Exp", status="bug", reason="off", issue="#2")
        yield api.Requirement(name="Tanh", status="unsupported", reason="no such unit")


@pytest.fixture(scope="module")
def dut() -> Iterator[DeviceUnderTest]:
    api.register(sys.modules[__name__], "faulty-for-tests")
    yield open_device("faulty:0")
    api.unregister("faulty-for-tests")


@pytest.fixture(scope="module")
def report(dut: DeviceUnderTest) -> Report:
    return suite.run(dut, ["L0", "L1", "L2"])


def outcome(report: Report, name: str) -> Any:
    return next(o for o in report.outcomes if o.id == name)


def reason(report: Report, name: str) -> str:
    return " ".join(r.reason for r in outcome(report, name).results if r.status != "passed")


def test_a_right_kernel_passes_and_counts_as_native(report: Report) -> None:
    found = outcome(report, "L2/Neg/float32")
    assert found.status == "passed"
    assert {r.how for r in found.results} == {"native"}
    assert any(r.case.endswith(".strided") for r in found.results)
    assert any(r.case.endswith(".unknown") for r in found.results)


def test_wrong_values_and_wrong_types_fail(report: Report) -> None:
    assert outcome(report, "L2/Abs/float32").status == "failed"
    assert "expected" in reason(report, "L2/Abs/float32")
    assert "dtype float64, expected float32" in reason(report, "L2/Square/float32")


def test_a_declared_bug_must_show(report: Report) -> None:
    assert outcome(report, "L2/Sqrt/float32").status == "known-bug"
    assert outcome(report, "L2/Exp/float32").status == "failed"
    assert "remove the record" in reason(report, "L2/Exp/float32")


def test_what_is_declared_unsupported_is_skipped_with_its_reason(report: Report) -> None:
    found = outcome(report, "L2/Tanh/float32")
    assert found.status == "skipped"
    assert found.results[0].kind == "unsupported"
    assert found.results[0].reason == "no such unit"


def test_a_claim_that_ran_no_sample_fails(report: Report) -> None:
    assert outcome(report, "L2/Sigmoid/float32").status == "failed"
    assert "no sample ran: " in reason(report, "L2/Sigmoid/float32")
    assert "it declines everything" in reason(report, "L2/Sigmoid/float32")


def test_a_kernel_may_decline_some_samples(report: Report) -> None:
    found = outcome(report, "L2/Log/float32")
    assert found.status == "passed"
    declined = [r for r in found.results if r.kind == "declined"]
    assert declined
    assert all("rank three" in r.reason for r in declined)


def test_a_kernel_of_an_unknown_op_fails(report: Report) -> None:
    assert "not registered" in reason(report, "L2/NoSuchOp")


def test_a_record_that_names_what_its_op_does_not_have_fails(report: Report) -> None:
    told = reason(report, "L2/Ceil")
    assert "unknown_attribute of plugin 'faulty-for-tests' on " in told
    assert "the record constrains Tidx, for Ceil an attribute that it does not have" in told


def test_the_checks_are_on_unless_the_user_says_otherwise(
    dut: DeviceUnderTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPDOCK_CHECK", raising=False)
    (unit,) = (u for u in suite.units(dut, ["L2"], ["Square"]) if u.dtype)
    assert "OPDOCK_CHECK: " in unit.results()[0][0].reason
    monkeypatch.setenv("OPDOCK_CHECK", "0")
    assert "OPDOCK_CHECK: " not in unit.results()[0][0].reason


def test_an_upload_that_keeps_the_array_fails(report: Report) -> None:
    assert outcome(report, "L0/mutate-after-upload").status == "failed"
    assert outcome(report, "L0/round-trip/float32").status == "passed"
    assert outcome(report, "L0/unsupported-type/int32").status == "passed"


def test_the_bring_up_set_counts_what_is_not_claimed(report: Report) -> None:
    score = next(s for s in report.levels() if s.level == "L1")
    assert score.unclaimed > 10
    assert score.claimed + score.unclaimed == 26


def test_scores(report: Report) -> None:
    passed, claimed = report.score()
    assert (passed, claimed) == (2, 8)  # Tanh is declared unsupported
    assert report.coverage()[1] > 1000
    assert not report.ok


def test_a_baseline_finds_what_was_lost(report: Report) -> None:
    assert report.regressions(report.passed_ids()) == []
    lost = report.regressions([*report.passed_ids(), "L2/Abs/float32", "L3/Neg/float32"])
    assert lost == ["L2/Abs/float32"]  # L3 did not run
    assert report.regressions(["L2/Neg/int32"], filtered=True) == []


def test_the_report_as_data_and_text(report: Report) -> None:
    data = json.loads(json.dumps(report.to_dict()))
    assert data["units"]["L2/Neg/float32"] == "passed"
    assert data["score"]["claimed"] == 8
    text = markdown(report)
    row = next(line for line in text.splitlines() if line.startswith("| Neg |"))
    assert row.split("|")[4].strip() == "✓"
    assert row.split("|")[5].strip() == "–"
    assert badge(report) == {
        "schemaVersion": 1,
        "label": "opdock conformance",
        "message": badge(report)["message"],
        "color": "red",
    }


def test_an_op_that_falls_back_is_a_regression(dut: DeviceUnderTest, tmp_path: Any) -> None:
    found = suite.run(dut, ["ops"], ["Neg", "Selu"])
    assert found.way_by_op() == {"Neg": "native", "Selu": "fallback"}
    assert found.baseline()["ways"] == found.way_by_op()
    assert found.demotions({"Neg": "portable", "Selu": "fallback", "Gone": "native"}) == []
    assert found.demotions({"Selu": "native"}) == ["Selu: native, now fallback"]
    base = tmp_path / "base.json"
    base.write_text(json.dumps({"passed": [], "ways": {"Selu": "decomposed"}}))
    options = ["--device", "faulty:0", "--level", "ops", "--op", "Selu", "--baseline", str(base)]
    lost = CliRunner().invoke(command, options)
    assert lost.exit_code == 1
    assert "lost Selu: decomposed, now fallback" in lost.output


def test_a_folder_gets_everything(dut: DeviceUnderTest, tmp_path: Any) -> None:
    options = ["--device", "faulty:0", "--level", "L2", "--op", "Neg"]
    for folder in ("a", "b"):
        done = CliRunner().invoke(command, [*options, "--report", str(tmp_path / folder)])
        assert done.exit_code == 0, done.output
    names = {"badge.json", "badge.svg", "matrix.md", "report.json"}
    assert {p.name for p in (tmp_path / "a").iterdir()} == names
    for name in names - {"report.json"}:  # which has the times
        assert (tmp_path / "a" / name).read_text() == (tmp_path / "b" / name).read_text()
    assert "1/1 claims" in (tmp_path / "a/badge.svg").read_text()


def test_unknown_levels_and_devices_are_errors(dut: DeviceUnderTest) -> None:
    with pytest.raises(ValueError, match="There is no level L9"):
        suite.units(dut, ["L9"])
    with pytest.raises(ValueError, match="no device name"):
        open_device("nonsense")
    with pytest.raises(LookupError, match="There is no device 'nosuch:0'"):
        open_device("nosuch:0")


def test_a_part_of_a_baseline_is_renewed(dut: DeviceUnderTest, tmp_path: Any) -> None:
    """What did not run stays; what ran is as it is now."""
    base = tmp_path / "base.json"
    told = ["L2/Abs/float32", "L2/Log/float32", "L2/Neg/float32"]
    base.write_text(json.dumps({"passed": told, "ways": {"Log": "native"}}), encoding="utf-8")
    options = ["--device", "faulty:0", "--level", "L2", "--op", "Neg", "--op", "Abs"]
    CliRunner().invoke(command, [*options, "--write-baseline", str(base)])
    found = json.loads(base.read_text(encoding="utf-8"))
    assert found["passed"] == ["L2/Log/float32", "L2/Neg/float32"]  # Abs is wrong by now
    assert found["ways"] == {"Log": "native"}

    base.write_text("{}", encoding="utf-8")
    broken = CliRunner().invoke(command, [*options, "--write-baseline", str(base)])
    assert broken.exit_code == 2
    assert "--write-baseline" in broken.output


def test_what_passed_before_is_taken_over(dut: DeviceUnderTest, tmp_path: Any) -> None:
    """Abs is wrong by now, which nobody sees who does not run it; Neg runs, as nobody vouches."""
    base, card, data = tmp_path / "base.json", tmp_path / "card.md", tmp_path / "data.json"
    surveyed = [unit.id for unit in suite.units(dut, ["ops"], ["Abs", "Selu"])]
    told = {
        "passed": ["L2/Abs/float32", *surveyed],
        "ways": {"Abs": "native", "Selu": "decomposed"},
    }
    base.write_text(json.dumps(told), encoding="utf-8")
    options = ["--device", "faulty:0", "--level", "L2", "--level", "ops", "--op", "Neg"]
    options += ["--op", "Abs", "--op", "Selu", "--take", str(base)]
    done = CliRunner().invoke(command, [*options, "--markdown", str(card), "--json", str(data)])
    assert done.exit_code == 0, done.output
    assert "units that had passed before and did not run again: 3" in done.output
    found = json.loads(data.read_text(encoding="utf-8"))
    assert found["units_taken"] == 3
    assert found["units"]["L2/Abs/float32"] == found["units"]["L2/Neg/float32"] == "passed"
    assert found["ways"]["decomposed"] == 1
    assert found["levels"]["L2"]["cases"] > 0
    assert "3 units that had passed before, by the baseline, did not run again" in card.read_text()
    without = [word for word in options if word not in ("--take", str(base))]
    assert CliRunner().invoke(command, without).exit_code == 1


def test_the_command(dut: DeviceUnderTest, tmp_path: Any) -> None:
    base, card = tmp_path / "base.json", tmp_path / "sub" / "card.md"
    options = ["--device", "faulty:0", "--level", "L2", "--op", "Neg"]
    good = CliRunner().invoke(
        command, [*options, "--write-baseline", str(base), "--markdown", str(card)]
    )
    assert good.exit_code == 0, good.output
    assert "claims passed: 1/1 (100.0 %)" in good.output
    assert card.read_text(encoding="utf-8").startswith("# Conformance of faulty")
    assert "L2/Neg/float32" in json.loads(base.read_text())["passed"]

    bad = CliRunner().invoke(command, [*options, "--op", "Abs", "--baseline", str(base)])
    assert bad.exit_code == 1
    assert "failed L2/Abs/float32" in bad.output

    base.write_text(json.dumps({"passed": ["L2/Neg/float32", "L2/Log/float32"]}))
    lost = CliRunner().invoke(
        command, ["--device", "faulty:0", "--level", "L0", "--op", "empty", "--baseline", str(base)]
    )
    assert lost.exit_code == 0, lost.output  # other levels are not compared

    missing = CliRunner().invoke(command, ["--device", "nosuch:0"])
    assert missing.exit_code == 2
    assert "There is no device" in missing.output
