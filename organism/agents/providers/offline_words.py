"""The offline model's words: what it recognises in requests, English and German, and what it says itself."""

from __future__ import annotations

import re
from typing import Final

STAND_IN: Final = {
    "en": "I am the offline stand-in for a language model: I quote, summarise, fill in JSON and call tools. For real "
    "answers configure a model under `models` in organism.yaml: {provider: openai, api_key_env: OPENAI_API_KEY}.",
    "de": "Ich bin der Offline-Ersatz für ein Sprachmodell: Ich zitiere, fasse zusammen, fülle JSON aus und "
    "rufe Werkzeuge auf. Richtige Antworten gibt ein Modell unter `models` in organism.yaml, etwa {provider: openai}.",
}
QUOTED: Final = {"en": "“{}”", "de": "„{}“"}
IS: Final = {"en": "{} is {}.", "de": "{} ist {}."}
FAILED: Final = {"en": "{} failed: {}", "de": "{} ist gescheitert: {}"}
NOTHING: Final = {"en": "{} found nothing.", "de": "{} hat nichts gefunden."}
LANGUAGES: Final = {
    "de": "der die das und ist ein eine nicht ich du mein dein was wer wie wo welcher bitte mir den zu auf".split(),
    "en": "the and is a an not i you my your what who how where which please me of to on for it are does this".split(),
}
SILENT: Final = frozenset(
    "was were be been can could would should will at by from as or but if so then about there tell say know in one its "
    "with that when we our he she they very wird wurde war kann bei aus nach mit von für im am es sind hat oder aber "
    "auch nur sich sein dem mich wir meine deine wann welche einen einem einer des zum zur und spät viel".split()
).union(*LANGUAGES.values())  # words that do not say what a text is about
NEGATED: Final = re.compile(r"\b(?:not|don't|never|nicht|nie|kein\w*)\b", re.IGNORECASE)
NO_TOOLS: Final = re.compile(r"\b(?:not|no|without|don't|ohne|kein\w*)\b[^.!?]{0,80}\b(?:tool|werkzeug)", re.IGNORECASE)
SUMMARISE: Final = re.compile(r"\bsummar|\bsum up\b|\bshorten\b|\bfasse?\b.{0,200}zusammen|zusammenf", re.IGNORECASE)
CLAUSE_END: Final = re.compile(
    r"(?<=[.!?;])\s{1,9}|\n|,?\s{1,9}(?=(?:and|und) (?:what|was|how|wie|which|welche[rs]?|who|wer)\b)", re.IGNORECASE
)
NEUTRAL: Final = ("medium", "normal", "neutral", "unknown", "none", "other", "mittel", "unbekannt", "sonstige")
"""Where a text names no value of an enum, the first of these is chosen that it has."""
ASKS_SUM: Final = frozenset(
    "what what's whats is are how much calculate compute and so then please can could you tell me use the calculator "
    "was ist sind wie viel wieviel ergibt macht berechne rechne aus und bitte kannst du mir sage".split()
)  # a sum is asked for where nothing but these words stands before it
SPOKEN: Final = {
    r"\b(?:percent|prozent)\b": "%",
    r"%\s*(?:von|of)\b": "% of ",
    r"\bplus\b": "+",
    r"\bminus\b": "-",
    r"\b(?:times|mal)\b": "*",
    r"\b(?:divided by|geteilt durch)\b": "/",
    r"\b(?:to the power of|hoch)\b": "**",
    r"\b(?:square root of|wurzel aus)\s+(\d+)": r"sqrt(\1)",
}
ASKS_TIME: Final = re.compile(
    r"\bwh(?:at|ich) (?:day|date|time|weekday)\b|\b(?:today's|the current|the) (?:date|time)\b|\bwie spät\b|"
    r"\bwie ?viel uhr\b|\bwelcher (?:wochen)?tag\b|\bwelches datum\b",
    re.IGNORECASE,
)
ZONES: Final = {"tokio": "Asia/Tokyo", "germany": "Europe/Berlin", "deutschland": "Europe/Berlin"}
ASKS_LOOK_UP: Final = re.compile(
    r"\b(?:look up|search for|tell me about|who (?:is|was)|what (?:is|are|was)|such\w* nach|erzähl\w* mir (?:von|über)|"
    r"wer (?:ist|war)|was (?:ist|sind|war)) +(?:an? |the |eine? |der |die |das )?(?P<what>[^?!,;\n]{2,200})",
    re.IGNORECASE,
)
OWN: Final = re.compile(r"\b(?:my|your|you|me|i|mein\w*|dein\w*|du|dir|mir|ich)\b", re.IGNORECASE)
"""What the two who talk say of themselves is nothing to look up."""
SUM_TOOL: Final = re.compile(r"calculat|arithmetic|rechn", re.IGNORECASE)
TIME_TOOL: Final = re.compile(r"date.?time|current (?:date|time)|clock|uhrzeit", re.IGNORECASE)
LOOK_UP_TOOL: Final = re.compile(r"look\w{0,4} up|search|wikipedia|such|nachschlag", re.IGNORECASE)
POLITE: Final = frozenset("please can could would you bitte kannst du now jetzt then and und ask the me".split())
MOMENT: Final = "{zone}: {weekday}, {date}, {time}."
TELLING: Final = ("value", "extract", "text", "message", "summary", "result")  # entries that say what a tool found
