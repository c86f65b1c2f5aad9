"""Storage inverter as a Modbus TCP server process; its map comes from pysunspec2's own model definitions.

usage: sunspec_server.py PORT MODELS, such as 18502 1,103,124,203,802. The revert timers are honoured.
"""

import asyncio
import json
import sys
import time
from pathlib import Path

import sunspec2
from pymodbus.server import ModbusTcpServer
from pymodbus.simulator import DataType, SimData, SimDevice

DEFINITIONS = Path(sunspec2.__file__).parent / "models" / "json"
VALUES = {
    103: {"W": 1200, "W_SF": 0},
    124: {
        "WChaMax": 500, "WChaMax_SF": 1, "StorCtl_Mod": 0, "ChaState": 5500, "ChaState_SF": -2, "OutWRte": 10000,
        "InWRte": 10000, "InOutWRte_SF": -2, "InOutWRte_RvrtTms": 0, "ChaGriSet": 0,
    },
    203: {"W": -35, "W_SF": 1, "Hz": 5001, "Hz_SF": -2, "PhV": 2301, "V_SF": -1},
    704: {"WSetEna": 0, "WSetMod": 0, "WSet": 0, "WSet_SF": 0, "WSetRvrtTms": 0, "WSetEnaRvrt": 0},
    802: {"SoC": 550, "SoC_SF": -1, "W": 1200, "W_SF": 0},
}  # fmt: skip
MISSING = {"int16": 0x8000, "sunssf": 0x8000, "int32": 0x80000000, "uint32": 0xFFFFFFFF, "acc32": 0, "string": 0}
REVERTS = {124: ("InOutWRte_RvrtTms", "StorCtl_Mod"), 704: ("WSetRvrtTms", "WSetEna")}


def registers(models):
    """Return all registers of the map and the address of every point."""
    words, where = [0x5375, 0x6E53], {}
    for model in models:
        points = json.loads((DEFINITIONS / f"model_{model}.json").read_text())["group"]["points"]
        length = sum(point["size"] for point in points) - 2
        for point in points:
            given = {**VALUES.get(model, {}), "ID": model, "L": length}.get(point["name"])
            raw = MISSING.get(point["type"], 0xFFFF) if given is None else given
            where[model, point["name"]] = 40000 + len(words), point["size"]
            words += [raw >> 16 * part & 0xFFFF for part in reversed(range(point["size"]))]
    return [*words, 0xFFFF, 0], where


async def serve(port, models):
    words, where = registers(models)
    heard = dict.fromkeys(models, 0.0)

    async def note(function, start, address, count, current, new):
        for model in models:
            if new is not None and where[model, "ID"][0] <= address:
                heard[model] = time.monotonic()

    device = SimDevice(1, SimData(40000, values=words, datatype=DataType.REGISTERS), action=note)
    server = ModbusTcpServer(device, address=("127.0.0.1", port))

    async def revert():
        while True:
            await asyncio.sleep(0.1)
            for model in set(REVERTS) & set(models):
                timer, switch = (where[model, name] for name in REVERTS[model])
                parts = await server.async_getValues(1, 3, timer[0], timer[1])
                seconds = parts[-1]
                if 0 < seconds < 0xFFFF and time.monotonic() - heard[model] > seconds:
                    await server.async_setValues(1, 16, switch[0], [0])

    keep = asyncio.create_task(revert())
    await server.serve_forever()
    keep.cancel()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), [int(model) for model in sys.argv[2].split(",")]))
