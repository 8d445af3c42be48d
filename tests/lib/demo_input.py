"""demo_input.py - scripts/demo-input as a module, for tests of the controllers."""
import importlib.machinery
import importlib.util
import os
import sys

from harness import SRC

DEMO_INPUT = os.path.join(SRC, "scripts", "demo-input")


def load_demo_input():
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("demo_input_script", DEMO_INPUT)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("demo_input_script", loader))
    loader.exec_module(module)
    return module
