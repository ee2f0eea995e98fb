"""Word lists of English and German that the signals rest on."""


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


STOP_WORDS = _words(
    """
    a an the this that these those there it its i me my mine we us our you your yours he
    him his she her they them their one's is are was were be been being am do does did
    doing done have has had having will would shall should could might and or as of for
    at by about so then also just please some any which how who whom whose what when
    where why to on in from with into onto up down out over under s t re ve ll d
    if than per each every both own once
    der die das den dem des ein eine einen einem einer eines dies dieser diese dieses
    diesen diesem ich mich mir mein meine wir uns unser du dich dir dein sie ihr ihre ihren
    ihrem ihrer er es ihn ihm sein seine man ist sind war waren wird werden wurde wurden hat
    haben hatte soll sollen und oder als für bei im am zum zur beim dann auch nur was welche
    welcher welches wie wann wo warum wer wen wem zu auf in von mit aus an um pro je jede
    jeder jedes beide eigene
    """
)

NEGATIONS = _words(
    """
    not no never none neither nor nobody nothing nowhere without cannot dont doesnt didnt
    isnt arent wasnt werent cant couldnt wont mustnt neednt shouldnt unless
    nicht kein keine keinen keinem keiner keines nie niemals niemand nichts ohne weder
    """
)
# A lead that answers a question as a whole.
LEADS = {"yes": 1, "ja": 1, "no": -1, "nein": -1}

# An axis has two poles; a negation in the sentence turns a word to the other one.
AXES: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "requirement": (
        _words(
            """required require requires need needs needed must mandatory compulsory
            obligatory obliged obligation necessary has_to have_to requirement
            pflicht verpflichtend verpflichtet erforderlich nötig notwendig muss müssen
            braucht brauchen benötigt benötigen"""
        ),
        _words(
            """optional voluntary discretion discretionary exempt waived unnecessary
            freiwillig freigestellt entbehrlich optionale"""
        ),
    ),
    "permission": (
        _words(
            """may can allowed allow allows permitted permit_s possible accepted accept
            accepts able welcome eligible
            darf dürfen kann können erlaubt möglich gestattet zulässig"""
        ),
        _words(
            """prohibited prohibit prohibits forbidden banned excluded refused refuse
            refuses impossible ineligible disallowed final
            verboten untersagt ausgeschlossen unmöglich unzulässig"""
        ),
    ),
    "cost": (
        _words(
            """charged charge charges chargeable fee fees costs cost pay pays paid payable
            penalty surcharge price
            kostet kosten gebühr gebühren kostenpflichtig zahlen zahlt bezahlen preis"""
        ),
        _words(
            """free gratis complimentary refundable
            kostenlos kostenfrei gratis gebührenfrei unentgeltlich"""
        ),
    ),
    "open": (
        _words("open opens opened geöffnet offen öffnet"),
        _words("closed shut geschlossen"),
    ),
    "cover": (
        _words(
            """includes include included covers cover covered contains contain supports
            enthält enthalten inklusive deckt gedeckt umfasst"""
        ),
        _words("excludes exclude uncovered ausgenommen"),
    ),
}
# Poles whose word is itself a denial, wherever it stands.
DENYING = frozenset().union(*(negative for _, negative in AXES.values()))

# Opposite ends of which one sentence says one: both can not be right.
ANTONYMS = (
    "increase lower", "increases lowers", "increases reduces", "increases decreases",
    "raise lower", "raises lowers", "fixed variable", "inside outside", "before after",
    "above below", "always never", "taxable tax-free", "full empty", "full partial",
    "earlier later", "left right", "minimum maximum", "least most", "hot cold",
    "warm cold", "high low", "higher lower", "rises falls", "rise fall", "wet dry",
    "safe dangerous", "legal illegal", "valid expired", "automatic manual",
    "automatically manually", "secured unsecured", "permanent temporary",
    "deductible nondeductible", "starts ends", "begins ends", "accept reject",
    "accepts rejects", "gross net", "included excluded", "public private",
    "vor nach", "innerhalb außerhalb", "immer nie", "steuerpflichtig steuerfrei",
    "fest variabel", "erhöht senkt", "mindestens höchstens", "hoch niedrig",
    "warm kalt", "sicher gefährlich", "brutto netto",
)  # fmt: skip
# Denials by prefix or ending: "insured" and "uninsured", "taxable" and "tax-free".
DENYING_PREFIXES = ("un", "in", "im", "il", "ir", "non", "non-", "dis", "nicht")

# Whom or when a sentence is about: the two differ and neither is wrong.
SCOPES = (
    "adult child", "adults children", "summer winter", "online paper", "online post",
    "new existing", "resident visitor", "residents visitors", "residents tourists",
    "day night", "first second", "smokers non-smokers", "weekday weekend",
    "weekdays weekends", "weekdays saturdays", "weekdays sundays", "indoor outdoor",
    "domestic foreign", "private business", "employed self-employed",
    "employees self-employed", "students adults", "students pensioners",
    "members non-members", "single married", "under over", "below above",
    "until from", "until since", "before since", "before from", "with without",
    "own other", "pregnant healthy", "morning evening", "north south", "east west",
    "erwachsene kinder", "sommer winter", "neukunden bestandskunden", "tag nacht",
    "mit ohne", "unter über", "bis ab", "vor seit", "privat geschäftlich",
)  # fmt: skip
POPULATIONS = _words(
    """
    adults adult children child students student pensioners residents visitors tourists
    smokers non-smokers customers members employees citizens applicants patients women men
    pregnant infants teenagers seniors landlords tenants freelancers
    erwachsene kinder studierende studenten rentner einwohner besucher kunden mitglieder
    """
)
# What fronts a sentence and says when it holds.
FRONTING = _words(
    """
    in on at for with without during before after until since from by if when under over
    within above below outside inside between
    im am bei für mit ohne während vor nach bis seit ab wenn falls unter über zwischen
    """
)
# "Line 12", "plan B": the number or letter is a name.
DESIGNATED = _words(
    """
    line room plan form article section paragraph window counter gate platform bus zone
    level floor type class model annex chapter tariff group stage
    linie raum plan formular artikel abschnitt schalter gleis zone stufe typ tarif gruppe
    """
)

# Questions that ask for another kind of answer; longer ones first.
QUESTION_KINDS = {
    "how long": "duration",
    "how often": "frequency",
    "how many": "count",
    "wie lange": "duration",
    "wie oft": "frequency",
    "wie viele": "count",
    "where": "place",
    "when": "time",
    "why": "cause",
    "wann": "time",
    "warum": "cause",
}

NUMBER_WORDS = {
    word: float(value)
    for value, words in {
        "0": "zero null",
        "0.25": "quarter viertel",
        "0.5": "half halbe halben halb",
        "1": "one eine einen single",
        "2": "two twice zwei zweimal",
        "3": "three thrice drei dreimal",
        "4": "four vier",
        "5": "five fünf",
        "6": "six sechs",
        "7": "seven sieben",
        "8": "eight acht",
        "9": "nine neun",
        "10": "ten zehn",
        "11": "eleven elf",
        "12": "twelve zwölf dozen",
        "13": "thirteen dreizehn",
        "14": "fourteen vierzehn",
        "15": "fifteen fünfzehn",
        "16": "sixteen sechzehn",
        "18": "eighteen achtzehn",
        "20": "twenty zwanzig",
        "21": "twenty-one",
        "24": "twenty-four vierundzwanzig",
        "30": "thirty dreißig",
        "40": "forty vierzig",
        "48": "forty-eight",
        "50": "fifty fünfzig",
        "60": "sixty sechzig",
        "70": "seventy siebzig",
        "80": "eighty achtzig",
        "90": "ninety neunzig",
        "100": "hundred hundert",
        "1000": "thousand tausend",
    }.items()
    for word in words.split()
}
SCALES = {"million": 1e6, "millionen": 1e6, "billion": 1e9, "thousand": 1e3, "k": 1e3}
ORDINALS = {
    word: float(number)
    for number, words in enumerate(
        (
            "first erste ersten erster",
            "second zweite zweiten zweiter",
            "third dritte dritten",
            "fourth vierte vierten",
            "fifth fünfte fünften",
            "sixth sechste",
            "seventh siebte",
            "eighth achte",
            "ninth neunte",
            "tenth zehnte",
            "last letzte letzten",
        ),
        start=1,
    )
    for word in words.split()
}
MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar jänner",
            "february feb februar",
            "march mar märz",
            "april apr",
            "may mai",
            "june jun juni",
            "july jul juli",
            "august aug",
            "september sep sept",
            "october oct oktober okt",
            "november nov",
            "december dec dezember dez",
        ),
        start=1,
    )
    for name in names.split()
}
WEEKDAYS = {
    name + plural: number
    for number, names in enumerate(
        (
            "monday montag",
            "tuesday dienstag",
            "wednesday mittwoch",
            "thursday donnerstag",
            "friday freitag",
            "saturday samstag",
            "sunday sonntag",
        )
    )
    for name in names.split()
    for plural in ("", "s")
}
_UNITS = (
    ("money:euro", 1, "€ eur euro euros"),
    ("money:dollar", 1, "$ usd dollar dollars"),
    ("money:pound", 1, "£ gbp pounds"),
    ("money:franc", 1, "chf franken francs"),
    ("percent", 1, "% percent prozent"),
    ("mass", 1e-6, "µg mcg microgram micrograms mikrogramm"),
    ("mass", 1e-3, "mg milligram milligrams milligramm"),
    ("mass", 1, "g gram grams gramm"),
    ("mass", 1e3, "kg kilo kilos kilogram kilograms kilogramm"),
    ("volume", 1e-3, "ml millilitre millilitres milliliter milliliters"),
    ("volume", 1, "l litre litres liter liters"),
    ("length", 1e-2, "cm centimetre centimetres centimeter centimeters zentimeter"),
    ("length", 1, "m metre metres meter meters"),
    ("length", 1e3, "km kilometre kilometres kilometer kilometers"),
    ("duration", 1 / 1440, "minute minutes minuten min"),
    ("duration", 1 / 24, "hour hours stunde stunden h"),
    ("duration", 1, "day days tag tage tagen"),
    ("duration", 7, "week weeks woche wochen"),
    ("duration", 30.4375, "month months monat monate monaten"),
    ("duration", 365.25, "year years jahr jahre jahren"),
    ("times", 1, "times mal"),
)
UNITS = {
    word: (dimension, float(scale))
    for dimension, scale, words in _UNITS
    for word in words.split()
}
"""Dimension and scale to its common unit, by the word: durations in days."""
