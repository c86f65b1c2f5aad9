from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from meterveil.data import channels
from meterveil.data.channels import read_channel, stream_channel
from meterveil.errors import InputError

START = 1_352_500_095


@pytest.fixture(autouse=True, scope="module", params=["extension", "fallback"])
def parser(request):
    """Read everything twice: with the extension, and as where it was not built."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "fallback":
            patch.setattr(channels, "add_up", None)
        elif channels.add_up is None:
            pytest.skip("the extension was not built: there is no C compiler")
        yield


def write(folder: Path, text: str) -> Path:
    path = folder / "channel_1.dat"
    path.write_bytes(text.encode())
    return path


def lines(seconds, watts) -> str:
    return "".join(f"{second} {watt}\n" for second, watt in zip(seconds, watts, strict=True))


def readings(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw samples every six seconds or so, with gaps, of one to five digits."""
    rng = np.random.default_rng(seed)
    step = rng.choice([5, 6, 6, 6, 7], size=count)
    step[rng.integers(0, count, size=count // 500)] = 4000
    watts = (10 ** rng.uniform(0, 4.99, size=count)).astype(int) * rng.integers(0, 2, size=count)
    return START + np.cumsum(step), watts


def pandas_means(path: Path) -> pd.Series:
    frame = pd.read_csv(path, sep=" ", names=["seconds", "watts"])
    frame = frame.drop_duplicates("seconds", keep="last").sort_values("seconds")
    frame.index = pd.to_datetime(frame["seconds"], unit="s", utc=True)
    return frame["watts"].resample("1min").mean().dropna()


def assert_equals_pandas(path: Path, **options) -> tuple[str, ...]:
    series, expected = stream_channel(path, **options), pandas_means(path)
    np.testing.assert_array_equal(series.minute * 60, expected.index.as_unit("s").asi8)
    np.testing.assert_allclose(series.watts, expected.to_numpy(), rtol=1e-12)
    return series.notes


@pytest.mark.parametrize("block_bytes", [20, 1000, 50_000, 10_000_000])
def test_minute_means_equal_pandas_wherever_the_file_is_cut(tmp_path, block_bytes):
    path = write(tmp_path, lines(*readings(3_000)))
    assert assert_equals_pandas(path, block_bytes=block_bytes) == ()


@pytest.mark.parametrize("block_bytes", [300, 10_000_000])
def test_unsorted_and_duplicated_stamps_equal_pandas_and_are_noted(tmp_path, block_bytes):
    seconds, watts = readings(2_000)
    order = np.random.default_rng(1).permutation(np.append(np.arange(2_000), np.arange(100)))
    path = write(tmp_path, lines(seconds[order], watts[order]))
    back, duplicated = assert_equals_pandas(path, block_bytes=block_bytes)
    assert back.startswith("stamps went back in time")
    assert duplicated.startswith("100 samples had the stamp of another")


def test_stamps_that_go_back_within_a_block_are_sorted_there(tmp_path):
    seconds, watts = readings(2_000)
    seconds[[10, 11]] = seconds[[11, 10]]
    notes = assert_equals_pandas(write(tmp_path, lines(seconds, watts)), block_bytes=1000)
    assert notes == ("stamps went back in time 1 times: sorted",)


def test_whole_blocks_in_the_wrong_order_are_put_in_order(tmp_path):
    older, newer = (lines(START + 6 * np.arange(100), range(100)), lines(START + 9000 + 6 * np.arange(100), range(100)))
    notes = assert_equals_pandas(write(tmp_path, newer + older), block_bytes=len(newer) - 1)
    assert notes == ("stamps went back in time 1 times: sorted",)


@pytest.mark.parametrize(
    "rewrite",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text[:-1],
        lambda text: text.replace("\n", ".25\n"),
        lambda text: text.replace(" ", ".5 "),
        lambda text: text.replace(" ", " -"),
        lambda text: text.replace(" ", " 98765"),
        lambda text: text.replace("\n", "\n\n"),
    ],
    ids=["crlf", "no final newline", "decimals", "split seconds", "negative", "wide values", "empty lines"],
)
@pytest.mark.parametrize("block_bytes", [200, 10_000_000])
def test_other_spellings_of_the_same_lines_equal_pandas(tmp_path, rewrite, block_bytes):
    assert_equals_pandas(write(tmp_path, rewrite(lines(*readings(300)))), block_bytes=block_bytes)


@settings(deadline=None)
@given(st.lists(st.integers(0, 9_999_999), min_size=1, max_size=60), st.integers(15, 400))
def test_any_plain_file_equals_pandas(tmp_path_factory, watts, block_bytes):
    path = write(tmp_path_factory.mktemp("any"), lines(START + 7 * np.arange(len(watts)), watts))
    assert_equals_pandas(path, block_bytes=block_bytes)


def test_a_sample_that_is_not_a_number_is_ignored(tmp_path):
    series = stream_channel(write(tmp_path, f"{START} 100\n{START + 6} nan\n"))
    assert series.watts.tolist() == [100.0]


@pytest.mark.parametrize(
    "bad",
    ["nan 7", "inf 7", "abc", "1 2 3", f"{START}", f"{START} ", f"{START} 12x", f"{START},5", "1352:00095 17", "é 5"],
)
@pytest.mark.parametrize("block_bytes", [100, 10_000_000])
def test_text_in_numbers_is_named_with_its_file_and_line(tmp_path, bad, block_bytes):
    good = lines(*readings(40)).splitlines()
    path = write(tmp_path, "\n".join([*good[:30], bad, *good[30:]]) + "\n")
    with pytest.raises(InputError) as error:
        stream_channel(path, block_bytes=block_bytes)
    assert str(error.value).startswith(f"{path}, line 31: '{bad}' is not '<unix seconds> <watts>'")
    assert "\n" not in str(error.value)


def test_a_file_without_lines_is_not_a_channel(tmp_path):
    path = write(tmp_path, "7" * 100_000)
    with pytest.raises(InputError, match="no line break within"):
        stream_channel(path, block_bytes=1000)


@pytest.mark.parametrize(("text", "reason"), [("", "is empty"), ("\n\n", "no readings")])
def test_an_empty_file_is_an_error(tmp_path, text, reason):
    with pytest.raises(InputError, match=reason):
        read_channel(write(tmp_path, text))


def test_a_file_of_the_release_reads_like_pandas(real_data):
    assert_equals_pandas(real_data / "ukdale" / "house_1" / "channel_1.dat", block_bytes=100_000)
