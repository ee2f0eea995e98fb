"""Word lists of English and German that the comparisons in `terms` rest on."""


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


STOP_WORDS = _words(
    # Articles, pronouns, auxiliaries, courtesies, colourless prepositions.
    """
    a an the this that these those there it its i me my mine we us our you your yours he
    him his she her they them their one ones is are was were be been being am do does did
    doing done have has had having will would shall should can could may might must and
    or as of for at by about so if then also just please kindly thank thanks hello hi hey
    tell know want like need get got what which how much way ways yes no let s t m re ve
    ll d here some any when where why who whom whose long often many
    der die das den dem des ein eine einen einem einer eines dies dieser diese dieses
    diesen diesem jener jene jenes ich mich mir mein meine meinen meinem meiner meines
    wir uns unser unsere du dich dir dein deine sie ihr ihre ihren ihrem ihnen er es ihn
    ihm sein seine man ist sind war waren wird werden wurde bin bist hat habe haben hatte
    kann können konnte könnte darf dürfen muss müssen soll sollen sollte will möchte und
    oder als für bei im am zum zur beim dann auch nur bitte danke hallo was welche
    welcher welches welchen wie viel geht gibt ja nein hier etwas wann wo warum wer wen
    wem lange oft viele
    """
)

# Questions that ask for another kind of answer; "how" and "what" are used alike.
QUESTION_KINDS = {
    "when": "time",
    "wann": "time",
    "where": "place",
    "wo": "place",
    "why": "cause",
    "warum": "cause",
    "wieso": "cause",
    "who": "person",
    "whom": "person",
    "whose": "person",
    "wer": "person",
    "wem": "person",
    "wen": "person",
    "how long": "duration",
    "wie lange": "duration",
    "how often": "frequency",
    "wie oft": "frequency",
    "how many": "count",
    "wie viele": "count",
    "how much": "amount",
    "wie viel": "amount",
}

DIRECTIONS = _words(
    """
    from to into in out inside outside with within before after until since over under
    above below between up down on off than instead more less fewer least most against
    von aus nach vor bis seit über unter ohne mit auf ab zwischen mehr weniger statt als
    """
)
OPPOSITES = (
    frozenset({"from", "to"}),
    frozenset({"from", "into"}),
    frozenset({"in", "out"}),
    frozenset({"inside", "outside"}),
    frozenset({"in", "outside"}),
    frozenset({"with", "outside"}),
    frozenset({"within", "outside"}),
    frozenset({"within", "after"}),
    frozenset({"before", "after"}),
    frozenset({"until", "since"}),
    frozenset({"until", "after"}),
    frozenset({"over", "under"}),
    frozenset({"above", "below"}),
    frozenset({"up", "down"}),
    frozenset({"on", "off"}),
    frozenset({"more", "less"}),
    frozenset({"more", "fewer"}),
    frozenset({"least", "most"}),
    frozenset({"von", "nach"}),
    frozenset({"aus", "nach"}),
    frozenset({"vor", "nach"}),
    frozenset({"bis", "ab"}),
    frozenset({"bis", "seit"}),
    frozenset({"über", "unter"}),
    frozenset({"mit", "ohne"}),
    frozenset({"mehr", "weniger"}),
)
# Where one of these stands, "A from B" and "B from A" are different questions.
ORDERING = _words(
    """
    from to into before after than instead over under above below
    von aus nach vor statt über unter
    """
)

NEGATIONS = _words(
    """
    not no never none neither nor nobody nothing nowhere without cannot
    nicht kein keine keinen keinem keiner keines nie niemals niemand nichts ohne weder
    dont doesnt didnt isnt arent wasnt cant couldnt wont
    """
)

NUMBER_WORDS = {
    word: str(value)
    for value, words in {
        0: "zero",
        2: "two twice zwei zweimal",
        3: "three drei dreimal",
        4: "four vier",
        5: "five fünf",
        6: "six sechs",
        7: "seven sieben",
        8: "eight acht",
        9: "nine neun",
        10: "ten zehn",
        11: "eleven elf",
        12: "twelve zwölf",
        13: "thirteen dreizehn",
        14: "fourteen vierzehn",
        15: "fifteen fünfzehn",
        16: "sixteen sechzehn",
        17: "seventeen siebzehn",
        18: "eighteen achtzehn",
        19: "nineteen neunzehn",
        20: "twenty zwanzig",
        24: "twenty-four vierundzwanzig",
        30: "thirty dreissig",
        40: "forty vierzig",
        45: "forty-five",
        48: "forty-eight achtundvierzig",
        50: "fifty fünfzig",
        60: "sixty sechzig",
        70: "seventy siebzig",
        80: "eighty achtzig",
        90: "ninety neunzig",
        100: "hundred hundert",
        1000: "thousand tausend",
        1000000: "million",
    }.items()
    for word in words.split()
}

MONTHS = {
    name: f"month{number}"
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

UNIT_SYMBOLS = {"€": "euro", "$": "dollar", "£": "pound", "%": "percent"}

# What a number may count: "30 euros" is not "30 percent".
UNIT_WORDS = _words(
    """
    euro dollar pound cent percent minute hour day week month quarter year
    sekunde minute stunde tag woche monat quartal jahr
    """
)

# Spellings of one word; what the replacement says is compared.
ALIASES = {
    "eur": "euro",
    "euros": "euro",
    "usd": "dollar",
    "gbp": "pound",
    "prozent": "percent",
}

ABBREVIATIONS = _words(
    "e.g. i.e. etc. approx. no. nr. z.b. d.h. bzw. ca. usw. mr. mrs. dr. inkl. incl."
)
