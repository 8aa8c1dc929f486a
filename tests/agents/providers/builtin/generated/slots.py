"""What stands in the phrases: numbers, places, names, days, by chance."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

PLACES = """Tokyo Tokio Asia/Tokyo, New_York New_York America/New_York, Berlin Berlin Europe/Berlin,
London London Europe/London, Sydney Sydney Australia/Sydney, Cairo Kairo Africa/Cairo, Moscow Moskau Europe/Moscow,
Los_Angeles Los_Angeles America/Los_Angeles, Nairobi Nairobi Africa/Nairobi, Toronto Toronto America/Toronto,
São_Paulo São_Paulo America/Sao_Paulo, Singapore Singapur Asia/Singapore, Lisbon Lissabon Europe/Lisbon,
Vienna Wien Europe/Vienna, Seoul Seoul Asia/Seoul, Helsinki Helsinki Europe/Helsinki, Athens Athen Europe/Athens,
Honolulu Honolulu Pacific/Honolulu, Buenos_Aires Buenos_Aires America/Argentina/Buenos_Aires,
Warsaw Warschau Europe/Warsaw, Munich München Europe/Berlin, San_Francisco San_Francisco America/Los_Angeles,
Mumbai Mumbai Asia/Kolkata, Geneva Genf Europe/Zurich"""
MONEY = "dollars Dollar USD, euros Euro EUR, pounds Pfund GBP, yen Yen JPY"
TONGUES = "French Französische fr, Spanish Spanische es, Italian Italienische it"
PEOPLE = "Grace Hopper, Emmy Noether, Konrad Zuse, Rosa Parks, Niels Bohr, Frida Kahlo, Johannes Kepler, Ada Lovelace"
FRIENDS = "Priya Nair, Tom Becker, Ines Ortega, Yusuf Demir"
THINGS = {
    "en": "photosynthesis, the Hanseatic League, plate tectonics, Mount Kilimanjaro, the Battle of Hastings",
    "de": "die Hanse, Photosynthese, der Bodensee, Plattentektonik, das Nibelungenlied",
}
DEEDS = {
    "en": "water the plants, call the dentist, buy oat milk, renew my passport, feed the goldfish",
    "de": "die Blumen zu gießen, Hafermilch zu kaufen, den Zahnarzt anzurufen, den Müll rauszubringen",
}
MONTHS = {
    "en": "January, February, March, April, May, June, July, August, September, October, November, December",
    "de": "Januar, Februar, März, April, Mai, Juni, Juli, August, September, Oktober, November, Dezember",
}
ARTICLES = ("the ", "die ", "der ", "das ")


def slots(random: Random, language: str) -> Mapping[str, str]:
    """A value for each slot. Of ``a`` and ``A`` the one is as people write it, the other as it is computed with.

    Where several values are right they stand beside each other with a ``|``.
    """
    whole = random.choice([random.randint(2, 99), random.randint(100, 98_765)])
    number = random.choice([str(whole), f"{random.uniform(1, 900):.2f}"])
    thing, (money, coins) = _one(random, THINGS[language]), random.sample(_rows(MONEY), 2)
    place, other = random.sample(_rows(PLACES), 2)
    at = int(language == "de")
    bare = next((thing.removeprefix(article) for article in ARTICLES if thing.startswith(article)), thing)
    tongue = random.choice(_rows(TONGUES))
    return {
        "a": _written(random, number, language),
        "A": number,
        "b": str(random.randint(2, 99)),
        "c": str(random.randint(2, 20)),
        "k": str(random.randint(2, 5)),
        "s": str(random.randint(3, 40) ** 2),
        "n": str(random.randint(2, 9_000)),
        "sides": random.choice(["6", "8", "12", "20"]),
        "place": place[at],
        "zone": place[2],
        "where": f"{place[0]}|{place[1]}",
        "goal": other[at],
        "whither": f"{other[0]}|{other[1]}",
        "person": _one(random, PEOPLE),
        "friend": _one(random, FRIENDS),
        "thing": thing,
        "title": f"{thing}|{bare}",
        "deed": _one(random, DEEDS[language]),
        "money": money[at],
        "money_code": money[2],
        "coins": coins[at],
        "coins_code": coins[2],
        "tongue": tongue[at],
        "tongues": f"{tongue[0]}|{tongue[1]}|{tongue[1].removesuffix('e')}|{tongue[2]}",
        "phrase": _one(random, "Good morning neighbour, Where is the station?, The soup is cold, See you on Friday"),
        **_given(random),
        **_day(random, language),
    }


def _given(random: Random) -> Mapping[str, str]:
    """What is the same in every language."""
    return {
        "url": f"https://{_one(random, 'example.org, news.example.com')}/{random.randint(1, 999)}",
        "mail": f"{_one(random, 'lee, nora.k, ops')}@example.{_one(random, 'com, org')}",
        "subject": _one(random, "Lunch on Monday, Invoice 4711, Hello from the lake"),
        "key": f"{_one(random, 'user/motto, team/colour, cfg/seat')}{random.randint(1, 99)}",
        "value": _one(random, "sea green, row 12, less is more, fish on Fridays"),
        "symbol": _one(random, "AAPL, MSFT, SAP, TSLA, NVDA"),
        "song": _one(random, "Blue in Green, Yesterday, Dancing Queen, Clair de Lune"),
        "word": _one(random, "serendipity, quixotic, petrichor, zeitgeist"),
        "ip": ".".join(str(random.randint(1, 254)) for _ in range(4)),
        "path": f"/{_one(random, 'tmp/draft, home/lee/notes, var/log/app')}{random.randint(1, 99)}.txt",
        "buyer": f"{_one(random, 'Dana, Piotr, Leila, Hugo')} {_one(random, 'Weber, Novak, Haddad, Moreau')}",
        "firm": _one(random, "Brightwater Ltd, Tannhof GmbH, Kestrel Inc"),
        "order": f"{_one(random, 'A, KX, ORD')}-{random.randint(1000, 99999)}",
        "cents": f"{random.randint(100, 9999) / 4:.2f}",
    }


def _one(random: Random, listed: str) -> str:
    return random.choice(listed.split(", "))


def _rows(listed: str) -> list[list[str]]:
    """Rows of words; an underscore is a blank, but in the name of a zone."""
    rows = [row.split() for row in listed.split(",")]
    return [[word if "/" in word else word.replace("_", " ") for word in row] for row in rows]


def _written(random: Random, number: str, language: str) -> str:
    """The number with separators now and then, and with a comma for the German's fraction."""
    whole, _, rest = number.partition(".")
    if len(whole) > 3 and random.random() < 0.5:
        whole = f"{int(whole):,}".replace(",", "." if language == "de" else ",")
    return whole + (("," if language == "de" else ".") + rest if rest else "")


def _day(random: Random, language: str) -> Mapping[str, str]:
    month, day = random.randint(1, 12), random.randint(1, 28)
    name = MONTHS[language].split(", ")[month - 1]
    german, english = f"{day}. {name} 2027", random.choice([f"{name} {day}, 2027", f"{day} {name} 2027"])
    written = german if language == "de" else english
    return {"day": written, "iso": f"2027-{month:02}-{day:02}"}
