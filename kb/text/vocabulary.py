"""The words of English and German that texts are compared by.

Every word list is here; what compares questions with evidence (`terms`), what finds
conflicts (`sentences`, `quantities`) and what checks proposals read the same ones.
"""


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


def _numbered(*rows: tuple[float, str]) -> dict[str, float]:
    return {word: float(number) for number, words in rows for word in words.split()}


STOP_WORDS = _words(
    # Articles, pronouns, auxiliaries, courtesies, colourless prepositions.
    """
    a an the this that these those there it its i me my mine we us our you your yours he
    him his she her they them their one one's ones is are was were be been being am do does
    did doing done have has had having will would shall should can could may might must and
    or as of for at by about so if then also just please kindly thank thanks hello hi hey
    tell know want like need get got what which how much way ways yes no let s t re ve ll d
    m here some any when where why who whom whose long often many on in from with into onto
    to up down out over under than per
    der die das den dem des ein eine einen einem einer eines dies dieser diese dieses
    diesen diesem jener jene jenes ich mich mir mein meine meinen meinem meiner meines
    wir uns unser unsere du dich dir dein deine sie ihr ihre ihren ihrem ihrer ihnen er es
    ihn ihm sein seine man ist sind war waren wird werden wurde wurden bin bist hat habe
    haben hatte kann können konnte könnte darf dürfen muss müssen soll sollen sollte will
    möchte und oder als für bei im am zum zur beim dann auch nur bitte danke hallo was
    welche welcher welches welchen wie viel geht gibt ja nein hier etwas wann wo warum wer
    wen wem lange oft viele zu auf in von mit aus an um pro je
    """
)
# "Each child" and "the child" are the same matter, not the same question.
DISTRIBUTIVES = _words("both each every once own beide eigene jede jeder jedes")

# Further words of every text, which name nothing.
FILLERS = _words(
    """
    across again all almost along already although always among another around became
    because become becomes behind beside besides beyond but called during either else
    even ever however including itself made mostly named next now only other others
    part perhaps quite rather same several such themselves therefore though through
    throughout together too toward towards upon used very while whole yet himself
    herself known aber alle allen aller alles andere anderen bereits besonders da
    dabei damit daher dass doch durch einige gegen genannt immer jedoch mehrere noch
    oben schon sehr sich sondern sowie während weil wenn worden
    """
)

NEGATIONS = _words(
    """
    not no never none neither nor nobody nothing nowhere without cannot dont doesnt didnt
    isnt arent wasnt werent cant couldnt wont mustnt neednt shouldnt
    nein nicht kein keine keinen keinem keiner keines nie niemals niemand nichts ohne weder
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
OPPOSITES = frozenset(
    frozenset(pair.split())
    for pair in (
        "from to", "from into", "in out", "inside outside", "in outside", "with outside",
        "within outside", "within after", "before after", "until since", "until after",
        "over under", "above below", "up down", "on off", "more less", "more fewer",
        "least most", "von nach", "aus nach", "vor nach", "bis ab", "bis seit",
        "über unter", "mit ohne", "mehr weniger",
    )
)  # fmt: skip
# Actions and ends of a scale whose opposite is about the same and answers otherwise, each
# side by the words that begin so.
REVERSALS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("before",), ("after",)),
    (("rais", "increas", "higher"), ("lower", "reduc", "decreas")),
    (("minimum",), ("maximum",)),
    (("lock", "block", "freez"), ("unlock", "unblock", "unfreez")),
    (("activat", "enabl"), ("deactivat", "disabl")),
    (("earliest",), ("latest",)),
    (("inbound", "incoming"), ("outbound", "outgoing")),
    (("vor",), ("nach",)),
    (("erhöh", "anheb"), ("senk", "herabsetz", "verringer")),
    (("sperr",), ("entsperr",)),
)
# Where one of these stands, "A from B" and "B from A" are different questions.
ORDERING = _words(
    """
    from to into before after than instead over under above below
    von aus nach vor statt über unter
    """
)

NUMBER_WORDS = _numbered(
    (0, "zero null"), (0.25, "quarter viertel"), (0.5, "half halbe halben halb"),
    (1, "one eine einen single"), (2, "two twice zwei zweimal"),
    (3, "three thrice drei dreimal"), (4, "four vier"), (5, "five fünf"),
    (6, "six sechs"), (7, "seven sieben"), (8, "eight acht"), (9, "nine neun"),
    (10, "ten zehn"), (11, "eleven elf"), (12, "twelve zwölf dozen"),
    (13, "thirteen dreizehn"), (14, "fourteen vierzehn"), (15, "fifteen fünfzehn"),
    (16, "sixteen sechzehn"), (17, "seventeen siebzehn"), (18, "eighteen achtzehn"),
    (19, "nineteen neunzehn"), (20, "twenty zwanzig"), (21, "twenty-one"),
    (24, "twenty-four vierundzwanzig"), (30, "thirty dreißig dreissig"),
    (40, "forty vierzig"), (45, "forty-five"), (48, "forty-eight achtundvierzig"),
    (50, "fifty fünfzig"), (60, "sixty sechzig"), (70, "seventy siebzig"),
    (80, "eighty achtzig"), (90, "ninety neunzig"), (100, "hundred hundert"),
    (1000, "thousand tausend"), (1_000_000, "million"),
)  # fmt: skip
SCALES = {"million": 1e6, "millionen": 1e6, "billion": 1e9, "thousand": 1e3, "k": 1e3}
ORDINALS = _numbered(
    (1, "first erste ersten erster"), (2, "second zweite zweiten zweiter"),
    (3, "third dritte dritten"), (4, "fourth vierte vierten"), (5, "fifth fünfte fünften"),
    (6, "sixth sechste"), (7, "seventh siebte"), (8, "eighth achte"), (9, "ninth neunte"),
    (10, "tenth zehnte"), (11, "last letzte letzten"),
)  # fmt: skip
MONTHS = _numbered(
    (1, "january jan januar jänner"), (2, "february feb februar"), (3, "march mar märz"),
    (4, "april apr"), (5, "may mai"), (6, "june jun juni"), (7, "july jul juli"),
    (8, "august aug"), (9, "september sep sept"), (10, "october oct oktober okt"),
    (11, "november nov"), (12, "december dec dezember dez"),
)  # fmt: skip
WEEKDAYS = _numbered(
    (0, "monday mondays montag montags"), (1, "tuesday tuesdays dienstag dienstags"),
    (2, "wednesday wednesdays mittwoch mittwochs"),
    (3, "thursday thursdays donnerstag donnerstags"),
    (4, "friday fridays freitag freitags"), (5, "saturday saturdays samstag samstags"),
    (6, "sunday sundays sonntag sonntags"),
)  # fmt: skip
# The first word of a unit is its name.
_UNITS = (
    ("money:euro", 1, "euro euros eur €"),
    ("money:dollar", 1, "dollar dollars usd $"),
    ("money:pound", 1, "pound pounds gbp £"),
    ("money:franc", 1, "franc francs franken chf"),
    ("money:cent", 1, "cent cents"),
    ("percent", 1, "percent prozent %"),
    ("mass", 1e-6, "microgram micrograms mikrogramm mcg µg"),
    ("mass", 1e-3, "milligram milligrams milligramm mg"),
    ("mass", 1, "gram grams gramm g"),
    ("mass", 1e3, "kilogram kilograms kilogramm kilo kilos kg"),
    ("volume", 1e-3, "millilitre millilitres milliliter milliliters ml"),
    ("volume", 1, "litre litres liter liters l"),
    ("length", 1e-2, "centimetre centimetres centimeter centimeters zentimeter cm"),
    ("length", 1, "metre metres meter meters m"),
    ("length", 1e3, "kilometre kilometres kilometer kilometers km"),
    ("duration", 1 / 86_400, "seconds"),
    ("duration", 1 / 86_400, "sekunde sekunden"),
    ("duration", 1 / 1440, "minute minutes minuten min"),
    ("duration", 1 / 24, "hour hours h"),
    ("duration", 1 / 24, "stunde stunden"),
    ("duration", 1, "day days"),
    ("duration", 1, "tag tage tagen"),
    ("duration", 7, "week weeks"),
    ("duration", 7, "woche wochen"),
    ("duration", 30.4375, "month months"),
    ("duration", 30.4375, "monat monate monaten"),
    ("duration", 91.3125, "quarters"),
    ("duration", 91.3125, "quartal quartale"),
    ("duration", 365.25, "year years"),
    ("duration", 365.25, "jahr jahre jahren"),
    ("times", 1, "times mal"),
)
UNITS = {
    word: (dimension, float(scale))
    for dimension, scale, words in _UNITS
    for word in words.split()
}
"""Dimension and scale to its common unit, by the word: durations in days."""
UNIT_NAMES = {
    word: words.split()[0] for _, _, words in _UNITS for word in words.split()
}
CURRENCIES = frozenset(
    UNIT_NAMES[word] for word in UNITS if UNITS[word][0].startswith("money")
)

ABBREVIATIONS = _words(
    """
    e.g. i.e. etc. approx. no. nr. z.b. d.h. bzw. ca. usw. mr. mrs. dr. inkl. incl.
    """
)
