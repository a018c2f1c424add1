"""The texts to speak: 180 to 200 characters and two sentences each, no text twice in a run.

The sentences are as long as in prose, so that they neither help nor hurt a server that speaks
sentence by sentence. All servers get the same texts in the same order.
"""

from __future__ import annotations

SENTENCES = (
    "The quick brown fox jumps over the lazy dog, and nobody in the garden seems to mind.",
    "Later that evening the rain came down hard on the old tin roof, and we listened to it.",
    "A large map of the northern coast hangs in the hall, just beside the low door to the kitchen.",
    "She had promised to write every week, but the first letter did not arrive before the spring.",
    "The train leaves from the second platform at a quarter past nine, and it is rarely on time.",
    "Most of the houses along the river were built of brick, because the forest was too far away.",
    "When the lights went out, somebody laughed, and then we heard the piano from the room above.",
    "Bring warm clothes and a good pair of shoes, since the path over the hills is steep and wet.",
    "He counted the money twice, put it back into the box, and locked the box with a small key.",
    "The museum opens at ten in the morning, and on Sundays there is no charge for the children.",
    "Nobody could say how old the tree was, but it had been there long before the village.",
    "They painted the boat in blue and white, and in June they sailed it slowly down to the sea.",
    "The baker on the corner sells bread from six in the morning until there is nothing left.",
    "If you follow the road past the mill, you come to a bridge that two people can hardly cross.",
    "It took the engineers almost a whole year to find the fault, and only a minute to repair it.",
    "Her grandfather kept bees behind the house, and in autumn every neighbour got a jar of honey.",
)


def text(number: int) -> str:
    """The text with this number. The texts repeat after 240."""
    count = len(SENTENCES)
    lap, first = divmod(number, count)
    second = (first + 1 + lap % (count - 1)) % count
    return f"{SENTENCES[first]} {SENTENCES[second]}"
