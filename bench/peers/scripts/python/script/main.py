import datetime
import random
import re
import sys

sys.path.insert(0, "/package")

import sandboxd


@sandboxd.tool
def echo(text):
    return text


sandboxd.serve()
