"""Loops tell how far they are, to whom listens and to nobody else."""

from transformer_core.progress import counted, listening


def test_a_loop_inside_a_loop_is_a_part_of_its_item() -> None:
    told: list[float] = []
    with listening(lambda done, total: told.append(done / total)):
        for _ in counted("ab"):
            for _ in counted(iter(range(4)), 4):
                pass
        for _ in counted([1, 2]):
            pass
    assert told == [0, 0, 1 / 8, 2 / 8, 3 / 8, 1 / 2, 4 / 8, 5 / 8, 6 / 8, 7 / 8, 0, 1 / 2]


def test_who_does_not_listen_is_told_nothing_and_a_loop_left_early_leaves_nothing_behind() -> None:
    told: list[int] = []
    with listening(lambda done, _: told.append(done)):
        for item in counted([5, 6, 7]):
            if item == 6:
                break
    assert list(counted([1, 2])) == [1, 2]
    assert told == [0, 1]
    with listening(lambda done, _: told.append(done)):
        assert list(counted([1, 2])) == [1, 2]
    assert told == [0, 1, 0, 1]
