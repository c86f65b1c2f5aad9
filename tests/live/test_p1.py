"""The P1 port of a smart meter, over TCP."""

import socketserver
import threading

import pytest
from counterparts import until

from meterveil.live.config import P1Table
from meterveil.live.drivers.p1 import P1Meter, checksum, power_w
from meterveil.live.ports import PortError
from meterveil.live.simulated import SystemClock

BODY = (
    b"/ISK5\\2M550T-1012\r\n\r\n1-3:0.2.8(50)\r\n0-0:1.0.0(260116120000W)\r\n1-0:1.8.1(006842.861*kWh)\r\n"
    b"1-0:1.7.0(00.150*kW)\r\n1-0:2.7.0(00.500*kW)\r\n1-0:32.7.0(231.4*V)\r\n!"
)
TELEGRAM = BODY + b"%04X\r\n" % checksum(BODY)


def test_power_is_import_minus_export_in_watts():
    assert power_w(TELEGRAM) == (-350.0, 231.4)


def test_the_checksum_is_that_of_a_published_telegram():
    assert checksum(b"123456789") == 0xBB3D  # check value of CRC-16/ARC


@pytest.mark.parametrize(
    "telegram",
    [b"", b"!\r\n", TELEGRAM.replace(b"00.150", b"00.151"), BODY.replace(b"1-0:1.7.0", b"1-0:9.9.9") + b"\r\n",
     b"/x\r\n1-0:1.7.0(1.2.3*kW)\r\n!\r\n"],
)  # fmt: skip
def test_a_damaged_telegram_gives_no_reading(telegram):
    assert power_w(telegram) is None


def test_old_telegrams_have_no_checksum():
    assert power_w(BODY + b"\r\n") == (-350.0, 231.4)


class Port(socketserver.BaseRequestHandler):
    def handle(self):
        for part in (b"noise !zz\r\n", TELEGRAM[:70], TELEGRAM[70:]):
            self.request.sendall(part)
        threading.Event().wait(0.5)


def test_the_meter_is_read_over_tcp_and_a_silent_one_is_named():
    with socketserver.TCPServer(("127.0.0.1", 0), Port) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        table = P1Table(driver="p1", host="127.0.0.1", port=server.server_address[1])
        meter = P1Meter(table, SystemClock())
        reading = until(lambda: _tried(meter))
        assert (reading.power_w, reading.voltage_v) == (-350.0, 231.4)
        server.shutdown()
        meter.close()
    lost = P1Meter(P1Table(driver="p1", host="127.0.0.1", port=9), SystemClock())
    with pytest.raises(PortError, match=r"127.0.0.1:9"):
        lost.read_meter()
    lost.close()


def _tried(meter):
    try:
        return meter.read_meter()
    except PortError:
        return None
