"""The lab in Python: peer.py write NAME FOLDER, peer.py read FOLDER FILE..."""
import sys
from pathlib import Path

import perhaps

if sys.argv[1] == "write":
    name, folder = sys.argv[2], Path(sys.argv[3])
    keys = folder.joinpath("keys").read_text().split("\n")[:-1]
    perhaps.build(keys, format="lab").save(folder / f"{name}.lab")
    for family in ["line", "ribbon"]:
        perhaps.build(keys, family=family).save(folder / f"{name}.{family}")
else:
    probes = Path(sys.argv[2]).joinpath("probes").read_text().split("\n")[:-1]
    for file in sys.argv[3:]:
        filter = perhaps.open(file, format="lab" if file.endswith(".lab") else None)
        print("".join("01"[probe in filter] for probe in probes))
