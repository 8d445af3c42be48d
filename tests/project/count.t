#!/usr/bin/env python3
"""count.t - scripts/count counts what it says, on a tree made for it."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403

TREE = {
    "a/one.h": "/* one.h - a\n * b */\nint one_get(void);\nint odd(void);\n",
    "a/one.c": '#include "one.h"\n#include "two.h"\n#include "alone.h"\n\n/* why */\nint\none_get(void)\n{\n'
               '\treturn two_get(); /* not "odd(" */\n}\n\nint\nodd(void)\n{\n\treturn 0;\n}\n',
    "a/two.h": "int two_get(void);\n",
    "a/two.c": '#include "two.h"\n#include "one.h"\n#include <pthread.h>\n\nstatic int\nown(void)\n{\n\treturn 0;\n}\n\nint\ntwo_get(void)\n{\n'
               '#if defined(__x86_64__)\n\tpthread_atfork(NULL, NULL, NULL);\n#endif\n'
               '\treturn strcmp(name, "heap") == 0 ? own() : one_get();\n}\n',
    "a/alone.h": "/* pthread_atfork() */\n",
}
WANT = """\
folder                                    files     code  comments  functions
a                                             5       32         4          4
all                                           5       32         4          4

headers of one file   1 of 3
functions elsewhere   1 of 3
atfork                1
architectures         1, tests 0
kinds by name         1
circles               1, of 2 files
                      one.c two.c
"""


@test
def folders_functions_and_circles_are_counted():
    if not shutil.which("git"):
        raise Skip("no git")
    with tempdir() as d:
        for path, text in dict(TREE, **{"scripts/count": open(os.path.join(SRC, "scripts/count")).read()}).items():
            os.makedirs(os.path.dirname(os.path.join(d, path)), exist_ok=True)
            with open(os.path.join(d, path), "w") as f:
                f.write(text)
        for argv in (("init", "-q"), ("add", ".")):
            equal(run("git", "-C", d, *argv).returncode, 0)
        r = run(sys.executable, os.path.join(d, "scripts/count"), "a")
        equal((r.returncode, r.stderr), (0, ""))
        equal(r.stdout, WANT)


main()
