"""A small grammar that writes opinions with negation, contrast and irony, for a classifier to learn from.

Reviews seldom say "not good at all"; people who try a classifier do. No sentence of everyday.py is written.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count as counting

from transformer_core.examples import Example
from transformer_core.recipes.everyday import ENGLISH_OPINIONS

WORDS = {
    "good": """good great wonderful excellent lovely delightful charming brilliant superb fantastic amazing enjoyable
    pleasant funny witty clever gripping moving touching thrilling exciting interesting fascinating beautiful stunning
    impressive perfect fresh tasty delicious friendly helpful kind polite patient honest reliable sturdy comfortable
    cosy clean quiet bright fast quick smooth easy useful practical handy generous warm relaxing inspiring memorable
    remarkable outstanding splendid magnificent satisfying rewarding refreshing elegant stylish solid well-made
    affordable convincing powerful hilarious heartwarming entertaining clear smart original imaginative lively
    magical marvellous flawless gorgeous terrific worthwhile trustworthy professional attentive efficient safe
    healthy spotless modern spacious""",
    "bad": """bad awful terrible horrible dreadful poor boring dull tedious slow ugly stupid silly pointless annoying
    irritating disappointing mediocre weak cheap flimsy broken useless unreliable uncomfortable dirty filthy noisy loud
    cold rude unfriendly unhelpful lazy arrogant careless dishonest confusing predictable forgettable lifeless bland
    tasteless stale greasy overpriced expensive shoddy clumsy awkward messy painful depressing miserable disgusting
    offensive ridiculous lame flat empty shallow pretentious sloppy unfunny unwatchable unbearable frustrating
    infuriating dangerous defective outdated cramped smelly sticky blurry buggy complicated tiring exhausting
    unpleasant worthless pathetic hopeless laughable amateurish repetitive chaotic unprofessional late""",
    "thing": """film movie book novel story plot ending soundtrack script series show episode documentary comedy cartoon
    play concert album song museum exhibition restaurant café meal soup pizza steak dessert breakfast lunch dinner
    coffee wine bread hotel room bed shower pool beach holiday trip flight train bus tour city park phone laptop tablet
    camera screen keyboard battery charger printer speaker radio watch fridge oven kettle vacuum toaster lamp sofa
    mattress desk bike car jacket coat dress shirt bag toy game app website update program course lesson lecture
    school class exam project service delivery package order shop market gym match party wedding speech idea design
    colour sound picture quality price tent knife pan mirror carpet garden""",
    "person": """waiter waitress teacher doctor nurse driver guide receptionist manager salesman barber dentist cook
    chef actor actress singer author director host hostess neighbour boss colleague coach mechanic plumber librarian
    pilot guard cashier trainer assistant""",
    "love": """love adore enjoy like admire recommend treasure appreciate cherish trust""",
    "loved": """loved adored enjoyed liked admired appreciated cherished""",
    "hate": """hate regret dislike despise detest""",
    "hated": """hated regretted disliked despised detested""",
    "very": "very really so quite truly incredibly absolutely rather pretty extremely",
    "who": "I we everyone we|all my|wife my|son my|friends my|mother the|children the|critics people most|people",
    "bad_event": """it|broke|after|two|days it|stopped|working|overnight the|lift|is|out|of|order|again
    the|train|is|late we|have|to|wait|another|hour they|lost|my|luggage the|screen|went|black it|froze|again
    they|sent|the|wrong|size
    there|was|no|towel nobody|picked|up|the|phone they|charged|me|twice the|food|never|came it|arrived|in|pieces
    the|power|went|out|again""",
    "good_np": """masterpiece joy delight treat pleasure gem triumph dream success bargain winner
    surprise|in|the|best|way real|page-turner work|of|art breath|of|fresh|air""",
    "bad_np": """mess disaster bore failure nightmare joke letdown flop insult rip-off waste|of|time waste|of|money
    total|disappointment chore mistake pain torture|from|start|to|finish""",
    "flaw": """flaw fault scratch weakness problem complaint mistake dull|moment boring|minute weak|scene bad|word""",
    "merit": """charm humour flavour warmth sense logic energy imagination style tension character heart skill taste""",
    "fell": """fell|asleep walked|out gave|up switched|it|off lost|interest felt|cheated wanted|to|leave|early
    sent|it|back asked|for|my|money|back threw|it|away""",
    "glad": """laughed|a|lot smiled|the|whole|time cried|with|joy felt|at|home want|more would|buy|it|again
    would|do|it|again went|back|twice slept|like|a|baby stayed|up|all|night|to|finish|it""",
    "pest": """queues noise dust cold|coffee broken|chairs long|speeches bad|jokes hard|beds empty|promises wet|socks
    loud|neighbours slow|computers""",
    "time": "today yesterday last|night this|morning last|week this|summer last|year on|Monday at|the|weekend",
}
LEXICON = {name: tuple(word.replace("|", " ") for word in words.split()) for name, words in WORDS.items()}


@dataclass(frozen=True)
class Template:
    """A sentence with slots; {good} is a word of the lexicon, {good2} another, {a:good} one with its article."""

    text: str
    label: int


def _templates(kind: str, label: int, *texts: str) -> tuple[str, list[Template]]:
    return kind, [Template(text, label) for text in texts]


GRAMMAR = (
    _templates(
        "plain",
        1,
        "The {thing} was {good}.",
        "The {thing} is {very} {good} and {good2}.",
        "What {a:good} {thing}!",
        "{who} {loved} the {thing}.",
        "{a:good}, {good2} {thing}",
        "It was {a:good_np}.",
        "Our {person} was {good} and {good2}.",
        "{who} {glad}.",
        "The {thing} is {a:good_np}.",
        "I {love} this {thing}.",
    ),
    _templates(
        "plain",
        0,
        "The {thing} was {bad}.",
        "The {thing} is {very} {bad} and {bad2}.",
        "What {a:bad} {thing}!",
        "{who} {hated} the {thing}.",
        "{a:bad}, {bad2} {thing}",
        "It was {a:bad_np}.",
        "Our {person} was {bad} and {bad2}.",
        "{who} {fell}.",
        "The {thing} is {a:bad_np}.",
        "I {hate} this {thing}.",
    ),
    _templates(
        "good denied",
        0,
        "The {thing} was not {good} at all.",
        "The {thing} isn't {good}.",
        "The {thing} is not {very} {good}.",
        "This {thing} is hardly {good}.",
        "This {thing} was never {good}.",
        "not {good} at all",
        "not {very} {good}",
        "not {a:good} {thing}",
        "It is far from {good}.",
        "The {thing} was anything but {good}.",
        "There is nothing {good} about this {thing}.",
        "{who} did not {love} the {thing}.",
        "I can't {love} this {thing}.",
        "I cannot {love} the {thing} at all.",
        "I don't think the {thing} is {good}.",
        "I don't {love} it.",
        "No one would call the {thing} {good}.",
        "Nobody {loved} the {thing}.",
        "Neither the {thing} nor the {thing2} was {good}.",
        "{a:thing} without any {merit}",
        "The {thing} has no {merit} and no {merit2}.",
        "The {person} wasn't {good} to us.",
        "This is not {a:good_np}.",
        "It never becomes {good}.",
    ),
    _templates(
        "bad denied",
        1,
        "The {thing} was not {bad} at all.",
        "The {thing} isn't {bad}.",
        "not {bad} at all",
        "not {bad}",
        "not {a:bad} {thing}",
        "The {thing} is never {bad}.",
        "It never gets {bad}.",
        "The {thing} was anything but {bad}.",
        "There is nothing {bad} about this {thing}.",
        "I can't find anything {bad} about the {thing}.",
        "{who} didn't find the {thing} {bad} in the least.",
        "The {thing} has not a single {flaw}.",
        "without a single {flaw}",
        "I can't find {a:flaw} in this {thing}.",
        "The {thing} couldn't be better.",
        "I can't {love} this {thing} enough.",
        "I would not change a thing about this {thing}.",
        "Nobody could {hate} this {thing}.",
        "{who} did not {hate} the {thing} at all.",
        "I don't {hate} a single minute of the {thing}.",
        "I could not stop reading the {thing}.",
        "We could not stop smiling at the {thing}.",
        "no regrets about the {thing}",
        "The {person} was never {bad} to us.",
        "You will not {hate} it.",
        "Never {a:bad} {thing} in this place.",
    ),
    _templates(
        "wished",
        0,
        "The {thing} could have been so much {better}.",
        "I expected a {better} {thing}.",
        "The {thing} should have been {good}.",
        "It would have been {good} if it had worked.",
        "I wish I had never seen this {thing}.",
        "The {thing} used to be {good}.",
        "The {thing} would be {good} without the {pest}.",
        "I have seen {better} {thing}s.",
        "I've had enough of this {thing}.",
        "I hoped for {a:good} {thing} and got {a:bad_np}.",
        "They promised {a:good} {thing}, and it was {bad}.",
        "I wanted to {love} the {thing}, but I couldn't.",
    ),
    _templates(
        "contrast",
        1,
        "The {thing} is {bad}, but the {thing2} is {good}.",
        "The {thing} is {bad}, but I {love} it.",
        "Although the {thing} is {bad}, the {thing2} is {good}.",
        "Despite the {bad} {thing}, the {thing2} was {good}.",
        "I expected {a:bad_np} and got {a:good_np}.",
        "{bad} at first, {good} in the end",
        "They say the {thing} is {bad}; I found it {good}.",
        "It looks {bad}, yet it is {good}.",
        "I thought it would be {bad}, but it was {good}.",
        "It is {bad} in places, but {very} {good} as a whole.",
        "Not {good}, I thought, but then the {thing} became {good2}.",
    ),
    _templates(
        "contrast",
        0,
        "The {thing} is {good}, but the {thing2} is {bad}.",
        "The {thing} is {good}, but I {hate} it.",
        "Although the {thing} is {good}, the {thing2} is {bad}.",
        "Despite the {good} {thing}, the {thing2} was {bad}.",
        "I expected {a:good_np} and got {a:bad_np}.",
        "{good} at first, {bad} in the end",
        "They say the {thing} is {good}; I found it {bad}.",
        "It looks {good}, yet it is {bad}.",
        "I thought it would be {good}, but it was {bad}.",
        "It is {good} in places, but {very} {bad} as a whole.",
        "The {thing} was {good} until {bad_event}.",
    ),
    _templates(
        "compared",
        1,
        "The {thing} was {better} than I expected.",
        "the {best} {thing} in years",
        "I have never seen a {better} {thing}.",
        "This is the {best} {thing} I know.",
        "No other {thing} is as {good} as this one.",
        "The new {thing} is less {bad} than the old one.",
        "I've never had such {a:good} {thing}.",
    ),
    _templates(
        "compared",
        0,
        "The {thing} was {worse} than I expected.",
        "the {worst} {thing} in years",
        "I have never seen a {worse} {thing}.",
        "This is the {worst} {thing} I know.",
        "The {thing} is not as {good} as they say.",
        "The new {thing} is less {good} than the old one.",
        "I've never had such {a:bad} {thing}.",
    ),
    _templates(
        "irony",
        0,
        "Great, {bad_event}.",
        "Oh wonderful, {bad_event}.",
        "Fantastic, another {bad} {thing}.",
        "Just what I needed: {a:bad} {thing}.",
        "If you like {pest}, this {thing} is for you.",
        "Thank you for the {pest}.",
        "What a surprise, {bad_event}.",
        "Perfect, now {bad_event}.",
        "Well done, {bad_event}.",
        "The best part of the {thing} was leaving.",
        "Who doesn't love {pest}?",
        "Lovely {thing}, if you enjoy {pest}.",
    ),
)
LEXICON |= {
    "better": ("better", "nicer", "funnier", "cleaner", "tastier", "cheaper", "more exciting", "more interesting"),
    "worse": ("worse", "duller", "dirtier", "ruder", "more boring", "more confusing", "more expensive"),
    "best": ("best", "nicest", "funniest", "cleanest", "most exciting", "most interesting", "loveliest"),
    "worst": ("worst", "dullest", "dirtiest", "most boring", "most confusing", "ugliest", "silliest"),
}
KINDS = tuple(dict.fromkeys(kind for kind, _ in GRAMMAR))
SHARES = {"plain": 2, "good denied": 4, "bad denied": 6, "wished": 1, "contrast": 4, "compared": 2, "irony": 1}


class _Slots(dict[str, str]):
    """Words for the slots of one sentence, drawn as they are asked for; equal names with a digit differ."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self._rng = rng

    def __missing__(self, slot: str) -> str:
        name = slot.rstrip("2")
        taken = set(self.values())
        self[slot] = next(word for word in iter(lambda: self._rng.choice(LEXICON[name]), None) if word not in taken)
        return self[slot]


class _Words:
    """The slots as format sees them: {a:good} asks "a" to write the word named after the colon with its article."""

    def __init__(self, slots: _Slots) -> None:
        self._slots = slots

    def __format__(self, slot: str) -> str:
        word = self._slots[slot]
        vowel = word.startswith("honest") or (word[0] in "aeiou" and not word.startswith(("use", "one")))
        return f"{'an' if vowel else 'a'} {word}"


def _filled(text: str, rng: random.Random) -> str:
    slots = _Slots(rng)
    slots["a"] = _Words(slots)  # type: ignore[assignment]
    return text.format_map(slots)


def _as_typed(sentence: str, rng: random.Random) -> str:
    """Return a sentence as people type: one in four begins with a small letter and has no stop."""
    if rng.random() < 0.25:
        return (sentence if sentence.startswith("I") else sentence[0].lower() + sentence[1:]).rstrip(".")
    return sentence[0].upper() + sentence[1:]


def _written(rng: random.Random) -> Iterator[tuple[str, Example]]:
    """Yield the kind and the sentence of one draw after the other, the classes in turn."""
    rows = [(kind, template, SHARES[kind] / len(found)) for kind, found in GRAMMAR for template in found]
    by_label = [[row for row in rows if row[1].label == label] for label in (0, 1)]
    weights = [[share for _, _, share in choices] for choices in by_label]
    for number in counting():
        label = number % 2
        ((kind, template, _),) = rng.choices(by_label[label], weights[label])
        yield kind, Example(_as_typed(_filled(template.text, rng), rng), label)


def opinions(count: int, *, seed: int) -> list[Example]:
    """Write sentences, about half of them positive, all different; the same seed gives the same.

    Of each class, kinds come in the proportions of SHARES: plain ones, a good or a bad word denied, wishes, contrasts,
    comparisons and irony, as far as the class has them.

    Args:
        count: how many; the grammar has many millions.
        seed: of every choice.
    """
    rng = random.Random(seed)
    kept = {text.casefold() for text, _ in ENGLISH_OPINIONS}
    found: list[Example] = []
    for _, example in _written(rng):
        if len(found) == count:
            break
        if example.text.casefold() not in kept:
            kept.add(example.text.casefold())
            found.append(example)
    return found
