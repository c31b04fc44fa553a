"""Colours of classes that stay apart for colour-blind readers, on white and on black."""

from __future__ import annotations

LIGHT = (
    "#3f73ab",
    "#942601",
    "#b7b726",
    "#3ac7cb",
    "#693446",
    "#dfa07c",
    "#ae99ff",
    "#433396",
    "#de6790",
    "#597345",
)
"""Ten colours for a white page, the ones furthest apart first.

Found by search: the least distance of two, as seen with normal sight and with any one kind of
cone missing, is as large as possible while none is garish or pale.
"""

DARK = (
    "#9dbbfe",
    "#e6a91a",
    "#79fab1",
    "#ada263",
    "#c75e16",
    "#806fd7",
    "#1e8fa9",
    "#a76f6c",
    "#ceed75",
    "#ffc8e2",
)
"""The same for a black page."""

_MIXES = (("#000000", 0.0), ("#000000", 0.35), ("#ffffff", 0.4))


def palette(n: int) -> list[tuple[str, str]]:
    """Return `n` pairs of a colour for a white and one for a black page, as `#rrggbb`.

    From the 11th on the ten come again, darker and then lighter; from the 31st on they repeat.
    """
    pairs = []
    for i in range(n):
        other, share = _MIXES[i // len(LIGHT) % len(_MIXES)]
        pairs.append(
            (_mix(LIGHT[i % len(LIGHT)], other, share), _mix(DARK[i % len(DARK)], other, share))
        )
    return pairs


def _mix(colour: str, other: str, share: float) -> str:
    channels = zip(bytes.fromhex(colour[1:]), bytes.fromhex(other[1:]), strict=True)
    return "#" + bytes(round(a * (1 - share) + b * share) for a, b in channels).hex()
