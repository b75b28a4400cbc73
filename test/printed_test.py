"""Promise: what a document shows as the output of a program is what the program prints, to the last digit.

    printed_test.py DOCUMENT PROGRAM

Would notice: a figure that has changed, or a block that is gone. The block begins with "$ .../PROGRAM".
"""
import difflib
import re
import subprocess
import sys
from pathlib import Path

document, program = Path(sys.argv[1]), Path(sys.argv[2])
blocks = re.findall(rf"^```console\n\$ \S*/{re.escape(program.name)}\n(.*?)^```$", document.read_text(), re.M | re.S)
if len(blocks) != 1:
    sys.exit(f"{document}: {len(blocks)} outputs of {program.name}, not one")
printed = subprocess.run([program], stdout=subprocess.PIPE, check=True, text=True).stdout
if printed != blocks[0]:
    sys.exit("".join(difflib.unified_diff(blocks[0].splitlines(True), printed.splitlines(True), str(document),
                                          program.name)))
