"""doc/recipes.md runs as it stands: every command succeeds and prints what the page says.

    recipes_test.py PERHAPS DOC REDIS_MODULE [unittest arguments]
"""
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

PERHAPS = os.path.abspath(sys.argv[1])
PAGE = os.path.abspath(sys.argv[2])
MODULE = os.path.abspath(sys.argv[3])


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def commands(block):
    """(command, what it prints): $ begins a command, > continues it."""
    steps = []
    for line in block.splitlines():
        if line.startswith("$ "):
            steps.append([line[2:], ""])
        elif line.startswith("> "):
            steps[-1][0] += "\n" + line[2:]
        else:
            steps[-1][1] += line + "\n"
    return steps


class Recipes(unittest.TestCase):
    def test_every_block(self):
        with open(PAGE, encoding="utf-8") as file:
            page = file.read()
        blocks = re.findall(r"```console\n(.*?)```", page, re.S)
        self.assertEqual(len(blocks), len(re.findall(r"^## ", page, re.M)))
        self.assertEqual(page.count("```"), 2 * len(blocks))
        folder = tempfile.mkdtemp(prefix="perhaps-recipes-")
        self.addCleanup(shutil.rmtree, folder)
        env = {**os.environ, "PATH": os.path.dirname(PERHAPS) + ":" + os.environ["PATH"], "N": "20000",
               "PORT": str(free_port()), "MODULE": MODULE, "LC_ALL": "C.UTF-8"}
        for block in blocks:
            steps = commands(block)
            self.assertGreater(len(steps), 2)
            # One shell for the block, so that its variables last; a mark after each command.
            script = "set -o pipefail\n" + "".join("%s\nprintf '\\036%%d\\036' $?\n" % command for command, _ in steps)
            done = subprocess.run(["bash", "-c", script], cwd=folder, env=env, capture_output=True, timeout=300)
            parts = done.stdout.decode().split("\x1e")
            for i, (command, prints) in enumerate(steps):
                self.assertEqual((parts[2 * i], parts[2 * i + 1]), (prints, "0"), (command, done.stderr.decode()))


if __name__ == "__main__":
    for needed in [PERHAPS, PAGE, MODULE]:
        if not os.path.exists(needed):
            sys.exit("usage: recipes_test.py PERHAPS DOC REDIS_MODULE: no " + needed)
    program = unittest.main(argv=[sys.argv[0], *sys.argv[4:]], exit=False)
    sys.exit(not program.result.wasSuccessful() or program.result.testsRun == 0)
