"""A child process for the tests of `ottla.runtime.child`: does what it is told, and answers."""

import atexit
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from ottla.runtime.parent import Parent


def main() -> None:
    parent = Parent.of_this_process()
    while True:
        match parent.hear():
            case ("pid",):
                parent.say(os.getpid())
            case ("say", word):
                parent.say(word)
            case ("print", word):
                print(word, flush=True)
                parent.say("printed")
            case ("kill",):
                os.kill(os.getpid(), signal.SIGKILL)
            case ("start",):
                parent.say(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid)
            case ("leave a note",):
                descriptor, path = tempfile.mkstemp()
                os.close(descriptor)
                atexit.register(Path(path).write_text, "left in good order")
                parent.say(path)


if __name__ == "__main__":
    main()
