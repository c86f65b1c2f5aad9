import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from meterveil.data import channels
from meterveil.data.channels import stream_channel
from meterveil.errors import InputError

START = 1_352_500_095
LINES = b"1352500095 1\n1352500096 22\n1352500160 54321\n1352500161 7.25\n"
KIND = {ord(digit): "digit" for digit in "0123456789"}

lines = pytest.importorskip("meterveil.data._lines", reason="the extension was not built: no C compiler")


def add_up(text: bytes, capacity: int = 100):
    """Return (minute, total, count), first and last second as lists, or None where the text is declined."""
    minute, count = np.full((2, capacity), -1)
    total = np.full(capacity, -1.0)
    summed = lines.add_up(text, minute, total, count)
    if summed is None:
        return None
    minutes, first, last = summed
    assert np.all(minute[minutes:] == -1)
    return minute[:minutes].tolist(), total[:minutes].tolist(), count[:minutes].tolist(), first, last


def by_pyarrow(path, **options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(channels, "add_up", None)
        return stream_channel(path, **options)


def assert_both_ways_agree(path, rtol: float, **options) -> None:
    series, expected = stream_channel(path, **options), by_pyarrow(path, **options)
    np.testing.assert_array_equal(series.minute, expected.minute)
    np.testing.assert_allclose(series.watts, expected.watts, rtol=rtol, atol=0)
    assert series.notes == expected.notes


def test_plain_lines_are_added_up_by_minute():
    minute = START // 60
    assert add_up(LINES) == ([minute, minute + 1], [23.0, 54328.25], [2, 2], START, START + 66)


def test_any_other_byte_than_a_digit_a_point_or_the_one_space_is_declined():
    accepted = set()
    for position in range(len(LINES)):
        for byte in range(256):
            if add_up(LINES[:position] + bytes([byte]) + LINES[position + 1 :]) is not None:
                was = LINES[position]
                accepted.add((KIND.get(was, chr(was)), KIND.get(byte, chr(byte))))
    same = {("digit", "digit"), (" ", " "), (".", "."), ("\n", "\n")}
    assert accepted == same | {("digit", "."), (".", "digit")}


WATTS = [b"", b" ", b" .5", b" 5.", b"  5", b" 1.2.3", b" -5", b" 1e3", b" 5\r", b" nan"]
TOO_LONG = [b" 123456789012345", b" 1.23456789012345", b" " + b"9" * 100]


@pytest.mark.parametrize(
    "line", [b"", b"135250020 5", b"13525002000 5", *(b"1352500200" + watts for watts in WATTS + TOO_LONG)]
)
def test_a_line_that_is_not_plain_is_declined(line):
    assert add_up(LINES + line + b"\n" + LINES) is None
    assert add_up(LINES + line + b"\n") is None


@pytest.mark.parametrize("second", [START, START + 66, START + 10])
def test_a_stamp_that_does_not_come_after_the_one_before_is_declined(second):
    assert add_up(LINES + f"{second} 5\n".encode()) is None


def test_a_text_is_declined_wherever_it_is_cut_off_but_behind_a_line():
    ends = {n for n in range(len(LINES) + 1) if add_up(LINES[:n]) is not None}
    assert ends == {n + 1 for n, byte in enumerate(LINES) if byte == ord("\n")}


@pytest.mark.parametrize("arrays", range(3))
def test_nothing_is_written_behind_the_smallest_array(arrays):
    text = b"".join(b"%d 5\n" % (START + 60 * n) for n in range(10))
    given_arrays = [np.full(10, -1), np.full(10, -1.0), np.full(10, -1)]
    whole = given_arrays[arrays]
    given_arrays[arrays] = whole[:9]
    assert lines.add_up(text, *given_arrays) is None
    assert whole[9] == -1
    given_arrays[arrays] = whole
    assert lines.add_up(text, *given_arrays) == (10, START, START + 540)


def test_arrays_that_may_not_be_written_are_refused():
    frozen = np.zeros(10)
    frozen.flags.writeable = False
    with pytest.raises(TypeError, match="read-write"):
        lines.add_up(LINES, frozen, np.zeros(10), np.zeros(10))


@settings(deadline=None)
@given(st.integers(0, 10**14 - 1), st.integers(0, 13))
@example(10**14 - 1, 13)
def test_every_value_is_the_double_nearest_to_what_is_written(mantissa, decimals):
    digits = f"{mantissa:014d}"
    written = f"{digits[: 14 - decimals]}.{digits[14 - decimals :]}".rstrip(".")
    _, (total,), *_ = add_up(f"{START} {written}\n".encode())
    assert total == float(written)


@settings(deadline=None)
@given(st.lists(st.integers(0, 10**14 - 1), min_size=60, max_size=60))
def test_whole_numbers_are_added_up_exactly(watts):
    text = "".join(f"{START // 60 * 60 + n} {watt}\n" for n, watt in enumerate(watts))
    assert add_up(text.encode())[1] == [sum(watts)]


@settings(deadline=None)
@given(st.lists(st.sampled_from([*b"0159 .\n-e\r\0", 255]), max_size=60).map(bytes))
def test_garbage_is_declined_or_is_what_pyarrow_reads(tmp_path_factory, garbage):
    text = LINES + garbage + b"\n"
    path = tmp_path_factory.mktemp("garbage") / "channel_1.dat"
    path.write_bytes(text)
    summed = add_up(text)
    try:
        series = by_pyarrow(path)
    except InputError:
        assert summed is None or summed[4] >= 4_102_444_800
        return
    if summed is not None:
        minute, total, count, _, _ = summed
        assert minute == series.minute.tolist()
        np.testing.assert_allclose(np.divide(total, count), series.watts, rtol=1e-15)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(-5, 90), st.integers(0, 10**6), st.integers(0, 3)), min_size=1, max_size=80),
    st.integers(15, 400),
)
def test_any_file_reads_the_same_both_ways(tmp_path_factory, samples, block_bytes):
    seconds = START + np.cumsum([step for step, _, _ in samples])
    watts = [f"{watt / 10**decimals:.{decimals}f}" for _, watt, decimals in samples]
    path = tmp_path_factory.mktemp("any") / "channel_1.dat"
    path.write_text("".join(f"{second} {watt}\n" for second, watt in zip(seconds, watts, strict=True)))
    assert_both_ways_agree(path, rtol=1e-13, block_bytes=block_bytes)


@pytest.mark.parametrize(("release", "rtol"), [("ukdale", 0), ("redd", 1e-13)])
def test_files_of_a_release_read_the_same_both_ways(real_data, release, rtol):
    paths = sorted((real_data / release).rglob("channel_*.dat"))
    assert paths
    for path in paths:
        assert_both_ways_agree(path, rtol)
