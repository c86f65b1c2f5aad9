"""GX device as a Modbus TCP server process, unit 100: usage victron_server.py PORT TIMEOUT_S.

The set-point in 2716 and 2717 lapses after the timeout. Writing anything else ends the process: 2700 wears flash.
"""

import asyncio
import os
import sys
import time

from pymodbus.server import ModbusTcpServer
from pymodbus.simulator import DataType, SimData, SimDevice

FIRST, LAST = 800, 2720
VALUES = {820: -200, 821: -100, 822: -50, 842: -1200, 843: 55, 2700: 30, 2716: 0x7FFF, 2717: 0xFFFF}


async def serve(port, timeout_s):
    words = [VALUES.get(address, 0) & 0xFFFF for address in range(FIRST, LAST)]
    heard_s = -1e9

    async def note(function, start, address, count, current, new):
        nonlocal heard_s
        if new is None:
            return
        if function != 16 or address != 2716 or count != 2:
            os._exit(3)
        heard_s = time.monotonic()

    device = SimDevice(100, SimData(FIRST, values=words, datatype=DataType.REGISTERS), action=note)
    server = ModbusTcpServer(device, address=("127.0.0.1", port))

    async def lapse():
        nonlocal heard_s
        while True:
            await asyncio.sleep(0.05)
            if 0 < timeout_s < time.monotonic() - heard_s < 1e6:
                heard_s = -1e9
                await server.async_setValues(100, 16, 2716, [0x7FFF, 0xFFFF])

    keep = asyncio.create_task(lapse())
    await server.serve_forever()
    keep.cancel()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), float(sys.argv[2])))
