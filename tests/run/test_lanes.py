"""From events to lanes: what warps, units and stages did when, by hand-made runs."""

import json

import ptxdsl.run.timeline_page
from ptxdsl.run.chrome_trace import chrome_trace
from ptxdsl.run.lanes import lanes
from ptxdsl.run.timeline_page import timeline_page
from ptxdsl.sim.machine.timeline import Event
from ptxdsl.source import Source, Span

FULL, EMPTY = "bars[0] (producer_mbar of stage 0)", "bars[3] (consumer_mbar of stage 0)"
# One stage, two trips: producer warp 0, consumer warp 1.
RING = [
    Event(0, "cta0.warp0", "start", "", 0),
    Event(0, "cta0.warp1", "start", "", 0),
    Event(1, "cta0.warp0", "seen", EMPTY, 7),
    Event(1, "cta0.warp1", "wait", f"mbarrier {FULL}", 9),
    Event(10, "cta0.warp0", "arrive", FULL, 8),
    Event(10, "cta0.warp0", "phase", f"{FULL} phase 0", 8),
    Event(11, "cta0.warp1", "resume", f"mbarrier {FULL}", 9),
    Event(11, "cta0.warp1", "seen", FULL, 9),
    Event(12, "cta0.warp0", "wait", f"mbarrier {EMPTY}", 7),
    Event(20, "cta0.warp1", "arrive", EMPTY, 10),
    Event(20, "cta0.warp1", "phase", f"{EMPTY} phase 0", 10),
    Event(21, "cta0.warp0", "resume", f"mbarrier {EMPTY}", 7),
    Event(21, "cta0.warp0", "seen", EMPTY, 7),
    Event(30, "cta0.warp0", "arrive", FULL, 8),
    Event(30, "cta0.warp0", "phase", f"{FULL} phase 1", 8),
    Event(31, "cta0.warp0", "exit", "", 0),
    Event(40, "cta0.warp1", "exit", "", 0),
]


def told(lane):
    return [(bar.start, bar.end, bar.state) for bar in lane.bars]


def test_a_stage_is_empty_filling_full_and_in_use():
    stage, producer, consumer = lanes(RING)
    assert stage.name == "cta0.stage 0 (bars[0], bars[3])"
    assert told(stage) == [
        (0, 1, "empty"), (1, 10, "filling"), (10, 11, "full"), (11, 20, "in use"), (20, 21, "empty"),
        (21, 30, "filling"), (30, 40, "full"),
    ]  # fmt: skip
    assert [bar.label for bar in stage.bars[3:5]] == ["in use, turn 0", "empty, turn 1"]
    assert told(producer) == [(0, 12, "run"), (12, 21, "wait"), (21, 31, "run")]
    assert producer.bars[1].label == f"waits for mbarrier {EMPTY}"
    assert told(consumer) == [(0, 1, "run"), (1, 11, "wait"), (11, 40, "run")]


def test_a_warp_that_waits_for_ever_is_shown_to_the_end():
    (lane,) = lanes([Event(0, "cta0.warp0", "start", "", 0), Event(5, "cta0.warp0", "wait", "bar.sync 0", 3)])
    assert lane.bars[-1].label == "waits for bar.sync 0 to the end"


def test_overlapping_work_of_a_unit_takes_two_lanes():
    events = [
        Event(0, "cta0.tma#0", "begin", "cp.async.bulk", 4),
        Event(5, "cta0.tma#1", "begin", "cp.async.bulk", 4),
        Event(10, "cta0.tma#0", "end", "cp.async.bulk", 4),
        Event(12, "cta0.tma#2", "begin", "cp.async.bulk", 4),
        Event(15, "cta0.tma#1", "end", "cp.async.bulk", 4),
    ]
    first, second = lanes(events)
    assert (first.name, second.name) == ("cta0.tma", "cta0.tma (2)")
    assert told(first) == [(0, 10, "work"), (12, 15, "work")]


def test_barriers_without_names_of_roles_are_paired_by_who_waits_and_arrives():
    plain = [Event(e.time, e.entity, e.kind, e.detail.replace(FULL, "b+8").replace(EMPTY, "a"), e.line) for e in RING]
    stage = lanes(plain)[0]
    assert stage.name == "cta0.stage (b+8, a)"
    assert told(stage) == told(lanes(RING)[0])


def test_named_stages_are_paired_though_another_is_released():
    """A consumer that gives stage 1 back when it has seen stage 0, as a bulk store that lags does."""
    events = [Event(0, "cta0.warp0", "start", "", 0)]
    for time, kind, barrier in [
        (1, "seen", "bars[0] (producer_mbar of stage 0)"),
        (2, "arrive", "bars[3] (consumer_mbar of stage 1)"),
        (3, "seen", "bars[1] (producer_mbar of stage 1)"),
        (4, "arrive", "bars[2] (consumer_mbar of stage 0)"),
    ]:
        events.append(Event(time, "cta0.warp0", kind, barrier, 1))
    assert [lane.name for lane in lanes(events) if lane.kind == "stage"] == [
        "cta0.stage 0 (bars[0], bars[2])",
        "cta0.stage 1 (bars[1], bars[3])",
    ]


def test_a_barrier_alone_shows_its_phases():
    events = [Event(4, "cta1.warp0", "phase", "once phase 0", 2), Event(9, "cta1.warp0", "exit", "", 0)]
    lane = lanes(events)[0]
    assert (lane.name, told(lane)) == ("cta1.once", [(0, 4, "phase"), (4, 9, "phase")])


def test_chrome_trace_is_what_perfetto_reads():
    source = Source("a.pdsl", "one\n  two\n")
    trace = json.loads(chrome_trace(lanes(RING), [None] * 6 + [Span(source, 6, 9)], 3))
    assert trace["otherData"] == {"events left out": 3}
    bars = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert all(bar["dur"] > 0 for bar in bars)
    waits = [bar for bar in bars if bar["name"] == "wait" and bar["args"]["ptx line"] == 7]
    assert waits[0]["args"]["source"] == "a.pdsl:2:3"
    assert {e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"} == {"cta0"}


def test_the_page_holds_the_data_and_no_link():
    source = Source("</script>.pdsl", "<b>\n")
    page = timeline_page(lanes(RING), [None] * 6 + [Span(source, 0, 3)], "k<1>")
    assert "k&lt;1&gt;" in page
    assert "http" not in page
    data = page.split('id="data">')[1].split("</script>")[0]
    assert "<" not in data
    assert json.loads(data)["lines"]["7"] == {"place": "</script>.pdsl:1:1", "text": "<b>"}


def test_what_a_page_has_no_room_for_is_the_end_of_the_run(monkeypatch):
    monkeypatch.setattr(ptxdsl.run.timeline_page, "MOST_BARS", 7)
    page = timeline_page(lanes(RING), [], "k", cut=100)
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    starts = [bar[0] for lane in data["lanes"] for bar in lane["bars"]]
    every = sorted(bar.start for lane in lanes(RING) for bar in lane.bars)
    assert sorted(starts) == [start for start in every if start < every[7]]
    assert data["cut"] == 100 + len(every) - len(starts)
