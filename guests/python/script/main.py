import random
import re
import sys

# -I leaves the script's own folder out of what is imported from.
sys.path.insert(0, "/package")

import sandboxd

# What is done out here is done once, not in each call.
WORD = re.compile(r"[^\W\d_]+")
COMMON = frozenset("the be to of and a in that have i it for not on with he as you do at this but his by from".split())


@sandboxd.tool
def count_words(text):
    counts = {}
    for word in WORD.findall(text.lower()):
        counts[word] = counts.get(word, 0) + 1
    return {"counts": counts, "common": sum(n for word, n in counts.items() if word in COMMON)}


@sandboxd.tool
def roll_dice(count=1):
    return {"dice": [random.randint(1, 6) for _ in range(count)]}


@sandboxd.tool
def add_line(line):
    if "\n" in line:
        raise ValueError("that is more than one line")
    with open("/data/journal.txt", "a") as journal:
        journal.write(line + "\n")
    return "Added."


sandboxd.serve()
