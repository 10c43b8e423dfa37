"""The two roles of the ring copy, as the elaborator hands them on: what the printer and the ring pass are shown."""

from build_tir import Builder

from ptxdsl.tir import F32, I32, Value, ptr


def ring_copy(stages: int = 3, ring_unroll: bool = True) -> Builder:
    """Warp 0 copies ``src`` into a ring of shared rows, warp 1 from there to ``res``."""
    b = Builder("copy", ring_unroll)
    src, res, n = b.param("src", ptr("global")), b.param("res", ptr("global")), b.param("n")
    bars, buf = b.shared("bars", 16 * stages), b.shared("buf", 128 * stages)
    empty = b.op("ptr.add", bars, 0, scale=8, offset=8 * stages, hint="empty")
    tid = b.op("tid_x", ty=I32)
    lane = b.op("mod.u", tid, 32, hint="lane")

    def row(base: Value, line: Value) -> Value:
        return b.op("ptr.add", base, b.op("add", b.op("mul", line, 32), lane), scale=4, offset=0)

    def role(name: str, producer: bool) -> None:
        settings = {"stages": stages, "producer": producer}
        mine, other = (bars, "full"), (empty, "empty")
        ours, theirs = (mine, other) if producer else (other, mine)
        b.line += 1
        b.pipe(name, "new", bars, empty, **settings)
        loop = b.for_(0, n, 0, int(producer), 0, names=f"i {name}.index {name}.phase {name}.count")
        with b.region(loop) as (i, index, phase, count):
            b.line += 1
            method = "acquire" if producer else "wait"
            b.pipe(name, "wait", theirs[0], index, phase, side=theirs[1], **settings, method=method)
            b.line += 1
            shared, far = row(buf, index), row(src if producer else res, i)
            b.store(*((shared, b.op("load", far, ty=F32, align=4, hint="v")) if producer else
                      (far, b.op("load", shared, ty=F32, align=4, hint="v"))))  # fmt: skip
            b.line += 1
            method = "commit" if producer else "release"
            b.pipe(name, "arrive", ours[0], index, side=ours[1], **settings, method=method)
            step = b.pipe(name, "step", index, phase, count, **settings, method=method)
            b.repeat(loop, *step.results)
        b.yield_()

    with b.region(test := b.if_(b.op("lt.u", tid, 32)), 0):
        role("p", True)
    with b.region(test, 1):
        role("c", False)
    b.ret()
    return b
