# ruff: noqa: E501
"""Equal elements end where Go's ``sort.Slice`` leaves them: what it made of these, of a digit or sign each."""

from __future__ import annotations

import pytest

from kemu.emulated.scheduler.preemption import sorts

RECORDED: list[tuple[str, list[int]]] = [
    ('0000000000000', [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
    ('0002102002220', [8, 1, 2, 12, 5, 0, 7, 4, 6, 9, 10, 11, 3]),
    ('10000110010001000011', [15, 14, 2, 3, 4, 8, 17, 7, 16, 1, 12, 11, 10, 5, 13, 0, 9, 6, 18, 19]),
    ('233221110232320031213300222330', [8, 29, 23, 22, 15, 14, 7, 5, 6, 19, 17, 3, 0, 13, 11, 4, 26, 25, 18, 9, 24, 16, 21, 2, 20, 10, 12, 27, 28, 1]),
    ('0112200221222112121011020100102011100112101212112100000', [19, 54, 53, 52, 51, 5, 6, 50, 41, 36, 35, 31, 29, 27, 0, 26, 24, 22, 14, 37, 20, 21, 1, 2, 16, 25, 49, 13, 28, 47, 46, 44, 32, 33, 34, 42, 9, 18, 38, 40, 30, 7, 10, 43, 11, 45, 8, 48, 39, 15, 12, 4, 3, 23, 17]),
    ('7E70?JB58904=A;CB:4FK@CDEG1>LKHKEIA<<<<3?D<1626>53:C130B4A3;', [10, 3, 54, 43, 26, 52, 45, 39, 49, 53, 58, 18, 11, 56, 7, 48, 44, 46, 2, 0, 8, 9, 50, 17, 59, 14, 38, 37, 36, 35, 42, 12, 27, 47, 40, 4, 21, 34, 57, 13, 16, 6, 55, 15, 51, 22, 41, 23, 1, 32, 24, 19, 25, 30, 33, 5, 20, 29, 31, 28]),
    ('00010111100111110001110001001011010100010011001110111100001010101100101011011100000010110000001000101011100111', [55, 82, 2, 106, 4, 105, 101, 99, 97, 9, 10, 96, 95, 93, 92, 91, 16, 17, 18, 90, 89, 88, 22, 23, 24, 85, 26, 27, 0, 29, 83, 1, 32, 81, 34, 80, 36, 37, 56, 79, 40, 41, 78, 74, 44, 45, 54, 71, 69, 49, 67, 66, 63, 61, 59, 57, 38, 104, 30, 46, 60, 53, 62, 52, 64, 84, 51, 50, 68, 48, 70, 47, 72, 73, 43, 75, 76, 77, 25, 39, 35, 33, 28, 58, 31, 42, 86, 87, 21, 20, 19, 15, 14, 13, 94, 12, 11, 8, 98, 7, 100, 6, 102, 103, 65, 5, 3, 107, 108, 109]),
    ('P8R9QP1L;V09;9NW7S3DQQSN6S3?<A26PLS14LDW', [10, 6, 35, 30, 26, 18, 36, 31, 24, 16, 1, 13, 3, 11, 8, 12, 28, 27, 29, 38, 19, 33, 37, 7, 23, 14, 0, 5, 32, 21, 20, 4, 2, 22, 34, 25, 17, 9, 15, 39]),
    ('0000000000000000001111111111111111111111222222222222222', [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54]),
    ('333333333222222222211111000000', [29, 28, 27, 26, 25, 24, 19, 23, 22, 21, 20, 14, 10, 13, 9, 15, 16, 17, 18, 11, 12, 0, 8, 7, 6, 5, 4, 3, 2, 1]),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "order"), RECORDED)
def test_equal_elements_end_where_go_leaves_them(keys: str, order: list[int]) -> None:
    places = list(range(len(keys)))
    sorts.sort(places, lambda place: keys[place])
    assert places == order


def test_few_elements_and_different_ones_are_sorted_as_anywhere() -> None:
    few = [3, 1, 2, 1, 3, 1]
    places = list(range(len(few)))
    sorts.sort(places, lambda place: few[place])
    assert places == [1, 3, 5, 2, 0, 4]
    many = list(range(100, 0, -1))
    sorts.sort(many, lambda one: one)
    assert many == list(range(1, 101))


def test_pods_that_have_not_started_change_places_with_each_comparison() -> None:
    """``MoreImportantPod`` takes the present time for each of them, so whichever is asked first has the earlier one."""
    few = ["b1", "a", "b2", "c", "b3"]
    sorts.sort(few, lambda one: one[0], lambda one: one[0] == "b")
    assert few == ["a", "b3", "b2", "b1", "c"]
