#!/usr/bin/env python3
"""getting_started.t - docs/getting-started.md, typed from top to bottom into one shell.

Of the lines only the length of windows is another.  What needs a cluster or another host is
left out by name.
"""
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)) + "/../lib")
from harness import *  # noqa: E402,F403
from documents import block, blocks  # noqa: E402
from installed import UP, alone, as_installed  # noqa: E402

PAGE = "docs/getting-started.md"
NOT_RUN = {"kubectl port-forward deployment/backend-controller 6060\n": "needs a cluster",
           "kubectl annotate pod -l app.kubernetes.io/name=backend-controller component.dev/profiling=true\n"
           "kubectl annotate pod -l app.kubernetes.io/name=backend-controller component.dev/profiling-\n": "needs a cluster",
           "ssh -L 6060:localhost:6060 host\n": "needs another host"}
BY_HAND = "ENABLE_PROFILING=true ./hello"  # each of these goes on until Ctrl-C; docs.t runs them


def typed(text, go):
    """A block as it is typed here."""
    if not go:
        text = re.sub("^go .*\n", "", text, flags=re.M)
    text = re.sub(r"seconds=\d+", "seconds=2", text)
    # A few seconds of a crowded machine may have nothing of the program in them.
    text = re.sub("^(go .* -list .*)$", r"until \1; do :; done", text, flags=re.M)
    # Until it listens; a person is slower than that.
    return text + UP if text.rstrip().endswith("&") else text


@test
def ten_minutes_lead_to_the_hot_function_its_line_and_the_memory():
    env = as_installed()
    go = shutil.which("go", path=env["PATH"])
    steps = [text for _, text in blocks("sh", PAGE) if text not in NOT_RUN and BY_HAND not in text]
    with tempdir() as d:
        with open(os.path.join(d, "hello.c"), "w") as f:
            f.write(block(PAGE, "Write a daemon", "c"))
        script = "set -e\n"
        for n, text in enumerate(steps):
            if "heap?format=top" in text:  # as much time as a reader takes until there
                script += "until curl -s 'http://localhost:6060/debug/pprof/heap?format=top' | grep -q remember; do sleep 0.1; done\n"
                script += "until curl -s 'http://localhost:6060/debug/pprof/profile?seconds=2&format=top' | grep -q count_primes; do :; done\n"
            script += "echo '--- %d'\n%s" % (n, typed(text, go))
        out = alone(script, dict(env, PPROF_TMPDIR=d), d)
    said = re.split(r"^--- \d+\n", out, flags=re.M)[1:]
    equal(len(said), len(steps))
    shown = dict(zip(steps, said))

    def of(word):
        return next(shown[s] for s in steps if word in s)
    need(re.search(r"^Hello.*--every.*Profiling.*--enable-pprof", of("--help"), re.M | re.S), of("--help"))
    contains(of("grep 'starting"), "http://127.0.0.1:6060/debug/pprof/")
    contains(of("profile?seconds=5&format=top'"), "profile: cpu, total ")
    need(re.search(r"heap: .*\n.*\n.* remember\n", of("heap?format=top")), of("heap?format=top"))
    contains(of("goroutine?debug=2"), "component_main(")
    contains(of("fgprof?seconds=5&format=top"), "fgprof: ")
    contains(of("memory'"), "bytes resident")
    if not go:
        raise Skip("no go on this machine: its commands did not run")
    contains(of("go tool pprof -list"), "ROUTINE ")
    need(re.search(r"^ +\S+ +\S+ +\d+:\s+(while \(n % d|d\+\+)", of("-list"), re.M), of("-list"))


@test
def what_is_left_out_is_in_the_document():
    found = [text for _, text in blocks("sh", PAGE)]
    equal([text for text in NOT_RUN if text not in found], [])
    equal(len([text for text in found if BY_HAND in text]), 1)


main()
