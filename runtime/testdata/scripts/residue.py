"""Leaves a secret wherever a script can, and looks for the secrets of others wherever
it can reach: testdata/residue for an interpreter, whose memory the host looks into."""

import os
import stat
import sys

sys.path.insert(0, "/package")

import sandboxd

SIZE = 32
left = []


def secrets(shares=""):
    """Puts secrets together."""
    raw = bytes.fromhex(shares)
    return [bytes(raw[at + i] ^ raw[at + SIZE + i] for i in range(SIZE)) for at in range(0, len(raw), 2 * SIZE)]


def fill(secret):
    left.extend([secret, bytes(b ^ 0xA5 for b in secret), secret.hex()])
    left.extend(bytearray(secret * 128) for _ in range(200))
    globals()["kept" + secret.hex()] = lambda: secret
    sys.modules["kept"] = secret
    os.environ["KEPT"] = secret.hex()
    sys.stderr.write(secret.hex())
    os.mkdir("/tmp/" + secret.hex())
    for i in range(6):
        fd = os.open("/tmp/" + secret[:8].hex() + str(i), os.O_RDWR | os.O_CREAT)
        os.write(fd, secret)


def seek(wanted):
    found = []
    if left or "kept" in sys.modules or any(n.startswith("kept") for n in globals()):
        found.append("global 0")
    if "KEPT" in os.environ:
        found.append("environment 0")
    for fd in range(3, 1101):
        try:
            if not stat.S_ISDIR(os.fstat(fd).st_mode):
                found.append(f"descriptor {fd}")
        except OSError:
            pass
    found.extend("scratch 0" for _ in os.listdir("/tmp"))
    for name in os.listdir("/data"):
        with open("/data/" + name, "rb") as f:
            if f.read() in wanted:
                found.append("volume 0")
    return "\n".join(found)


@sandboxd.tool
def trade(own="", fillFirst=False, end="", **arguments):
    def mine():
        for secret in secrets(own):
            fill(secret)

    if fillFirst:
        mine()
    text = seek(secrets(arguments.get("seek", "")))
    if not fillFirst:
        mine()
    while end == "spin":
        pass
    if end == "trap":
        os.abort()
    if end == "exit":
        os._exit(3)
    return {"content": [{"type": "text", "text": text}], "isError": end == "error"}


@sandboxd.tool
def keep(own, **arguments):
    with open("/data/kept", "wb") as f:
        f.write(secrets(own)[0])
    return ""


sandboxd.serve()
