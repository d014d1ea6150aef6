"""The time budget of checks, with a clock controlled by the test."""

from __future__ import annotations

from preflight.gate.check_limits import FAIR, FREE, MOST_DIGESTS, REMEMBERED, Budget

SECONDS = 0.4


class Clock:
    def __init__(self) -> None:
        self.now, self.lines, self.number = 1000.0, list[str](), 0
        self.budget = Budget(SECONDS, self.lines.append, lambda: self.now)

    def fail(self, user: str, key: bytes = b"") -> float:
        """A submission without a verdict within its limit; the seconds that it took."""
        self.number += 1
        key = key or str(self.number).encode()
        leave = self.budget.leave(user, key)
        if not leave.why:
            self.now += leave.processor
            self.budget.without(user, key, leave, leave.processor, worked=True)
        return leave.processor


def test_a_quiet_gate_gives_the_whole_deadline() -> None:
    clock = Clock()
    leave = clock.budget.leave("1", b"a")
    assert (leave.processor, leave.rich) == (SECONDS, True)


def test_without_a_verdict_it_is_answered_at_once_until_it_is_forgotten() -> None:
    clock = Clock()
    assert clock.fail("1", b"a") == SECONDS
    assert clock.budget.leave("2", b"a").processor == 0
    clock.now += REMEMBERED - 1
    assert "again in 1 s" in clock.budget.leave("2", b"a").why
    clock.now += 2
    assert clock.budget.leave("2", b"a").processor == SECONDS


def test_memory_of_digests_is_bounded() -> None:
    clock = Clock()
    clock.fail("1", b"first")
    for number in range(MOST_DIGESTS):
        leave = clock.budget.leave("2", b"%d" % number)
        clock.budget.without("2", b"%d" % number, leave, 0.0, worked=True)
        clock.now += 60
    assert clock.budget.leave("2", b"first").processor > 0


def test_what_all_users_together_wait_for_is_bounded() -> None:
    clock = Clock()
    begin = clock.now
    waited = sum(clock.fail(f"user {i}") for i in range(1000))
    assert SECONDS < waited <= SECONDS + 2 * FAIR
    assert abs(clock.now - begin - waited) < 1e-6 and len(clock.lines) == 1
    clock.now += 60
    assert clock.budget.leave("another", b"x").processor == SECONDS
    assert len(clock.lines) == 2 and "99" in clock.lines[1]


def test_over_an_hour_of_attacks_a_tenth_of_the_time_goes() -> None:
    clock = Clock()
    begin, waited = clock.now, 0.0
    while clock.now - begin < 3600:
        waited += clock.fail(f"user {clock.number}")
        clock.now += 0.05
    assert waited < 0.11 * 3600


def test_one_user_is_turned_away_before_all_are() -> None:
    clock = Clock()
    turned_away = 0
    for _ in range(100):
        turned_away += clock.fail("hostile") == 0
        assert clock.budget.leave("innocent", b"x").processor > 0
        clock.now += 1
    assert turned_away > 30 and not clock.lines
    clock.now += 60
    assert clock.budget.leave("hostile", b"x").processor > 0


def test_users_with_verdicts_are_checked_on_while_the_breaker_is_open() -> None:
    clock = Clock()
    clock.budget.judged("known", 0.01)
    for i in range(10):
        clock.fail(f"user {i}")
    assert clock.budget.leave("stranger", b"x").pause.startswith("all ")
    assert clock.budget.leave("known", b"x").processor == FAIR
    clock.fail("known")
    assert clock.budget.leave("known", b"y").pause.startswith("all ")


def test_even_users_with_verdicts_cannot_take_more_and_more() -> None:
    clock = Clock()
    for i in range(1000):
        clock.budget.judged(f"known {i}", 0.01)
    assert sum(clock.fail(f"known {i}") for i in range(1000)) <= 3 * SECONDS + 2 * FAIR


def test_quick_verdicts_cost_nothing_and_slow_ones_do() -> None:
    clock = Clock()
    for i in range(1000):
        clock.budget.judged(f"user {i % 20}", FREE)
    assert clock.budget.leave("1", b"x").processor == SECONDS
    for i in range(1000):
        clock.budget.judged(f"slow {i}", SECONDS)
    assert clock.budget.leave("stranger", b"x").processor == 0


def test_a_slow_machine_is_not_held_against_a_script() -> None:
    clock = Clock()
    leave = clock.budget.leave("1", b"a")
    clock.budget.without("1", b"a", leave, 0.1, worked=False)
    clock.now += 6
    assert clock.budget.leave("1", b"a").processor > 0
