"""The words by which follow-ups are recognised and resolved, in English and German."""

import re
from typing import Final


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


DETERMINERS: Final = words("""
a an the this that these those my your our his her their its any some each every no
another der die das den dem des ein eine einen einem einer eines mein meine meinen meinem
meiner unser unsere ihr ihre ihren ihrem kein keine keinen dieser diese dieses diesen
""")
# Determiners that a new noun phrase keeps instead of taking over the old one's.
OWN: Final = words("""
my our your his her their this these those mein meine meinen meinem meiner unser unsere
""")
PREPOSITIONS: Final = words("""
for of in on at to from with without by after before during within until till over under
above below per via through outside inside near between about as against into than up
für von im am bei mit ohne nach vor während bis ab über unter pro aus zu zum zur seit
gegen um auf ins beim vom
""")
# Prepositions of one kind, which may take each other's place.
KINDS: Final = (
    words("in to from at within outside inside near nach aus bei"),
    words("on at in during after before until by over am im um nach vor während bis"),
    words("for with of without für mit ohne von bei"),
    words("over under above below than up to from über unter ab bis"),
    words("by via per through with at per über"),
)
AUXILIARIES: Final = words("""
do does did is are was were be been can could may might will would shall should must has
have had isn't aren't don't doesn't didn't can't won't ist sind war waren kann können
könnte darf dürfen muss müssen soll sollen wird werden hat habe haben gibt möchte
""")
BEFORE_A_VERB: Final = words("""
do does did can could may might will would shall should must don't doesn't didn't can't
""")
BE: Final = words("is are was were be been isn't aren't ist sind war waren wird werden")
QUESTION_WORDS: Final = words("""
what which who whom whose when where why how was welche welcher welches welchen wer wen
wem wann wo warum wie wieviel woher wohin weshalb
""")
SUBORDINATORS: Final = words("if when while unless wenn falls solange ob")
PEOPLE: Final = words("""
i we you he she me us someone somebody anybody anyone ich du wir sie man jemand mir uns
""")
# Pronouns that may refer to a noun phrase of the earlier question.
SINGULAR: Final = words("it that")
PLURAL: Final = words("they them")
POSSESSIVE: Final = words("its their")
OTHERS: Final = words("""
and or but not no so then there here also too only just much many long often far else
more less most least very now again back off out away up down early earlier late later
something anything nothing everything oneself myself yourself themselves ever still yet
online offline abroad overnight today tomorrow once else telefonisch schriftlich persönlich
already possible und oder aber nicht auch nur noch dann dort hier es er ihn ihm
""")
FUNCTION: Final = (
    DETERMINERS
    | PREPOSITIONS
    | AUXILIARIES
    | QUESTION_WORDS
    | SUBORDINATORS
    | PEOPLE
    | SINGULAR
    | PLURAL
    | OTHERS
)
# Verbs that end a question after its subject: "does a Gold card cost?"
LAST_VERBS: Final = words("""
cost take work include expire last need apply mean happen arrive open close start begin
end contain cover require go pay earn receive get have stay count change rise increase
drop offer belong look differ borrow charge accept deliver support kosten kostet dauern dauert gelten gilt enthalten enthält
""")
# Predicates that follow a subject after "is" or "are": "are visitors allowed?"
SAID_OF: Final = words("""
free open closed valid due available allowed possible ready included needed required
accepted charged covered insured emptied collected delivered paid issued refused blocked
made sent held given kept taken good safe secure refundable transferable mandatory
compulsory necessary empty full high low expensive cheap old heavy large big small
offen gültig kostenlos möglich erlaubt fällig
""")
GRADES: Final = words(
    "much many long often far old heavy large big high early late soon fast viel lange oft früh"
)

# Openings of a follow-up, which are cut off before it is resolved.
COURTESY: Final = re.compile(
    r"(?:(?:ok(?:ay)?|thanks|thank you|great|good|right|i see|alright|perfect|danke|gut|super)"
    r"\b[\s,.!;:-]*)+",
    re.IGNORECASE,
)
MARKER: Final = re.compile(
    r"(?:(?:and|but|or|und|aber|oder)\s*,?\s+)?"
    r"(?:(?:what|how)(?:\s+is\s+it|'s\s+it|\s+does\s+it\s+look)?\s+(?:about|with)"
    r"|does\s+(?:that|this|it|the\s+same)\s+(?:also\s+)?(?:apply|go)\s+(?:to|for)"
    r"|was\s+ist\s+mit|wie\s+(?:ist|sieht)(?:\s+es)?\s+(?:mit|bei))\s+"
    r"|(?:is\s+(?:it|that)\s+)?(?:the\s+)?same\s+(?:thing\s+)?(?=(?:for|with|in|on|at)\s)"
    r"|gilt\s+das\s+(?:auch\s+)?(?=(?:für|bei)\s)"
    r"|(?:no\s*,\s*)?(?:i\s+meant?|ich\s+meine?)\s*,?\s+"
    r"|(?:and|but|or|also|plus|und|aber|oder|auch)\s*,?\s+(?:also\s+|then\s+|auch\s+)?",
    re.IGNORECASE,
)
TRAILING: Final = re.compile(
    r"(?:[\s,]+(?:too|as well|also|then|instead|please|though|auch|bitte|denn))+$",
    re.IGNORECASE,
)

COMPARISONS: Final = words("more less fewer mehr weniger")
# Adverbs of time and place, which may be added to any question.
ADVERBS: Final = words("abroad overnight today tomorrow later earlier here there")
CHANNELS: Final = words("online offline telefonisch schriftlich persönlich")
TIMES: Final = words("""
night day weekday morning evening noon midnight week weekend month year winter summer spring autumn
christmas easter holiday monday tuesday wednesday thursday friday saturday sunday january
february march april june july august september october november december nacht tag woche
wochenende montag dienstag mittwoch donnerstag freitag samstag sonntag
""")
# Attributes that anything may have: a question with no other noun is about the subject
# of the earlier one.
THIN: Final = words("""
fee fees charge charges cost costs limit limits minimum maximum discount deadline price
penalty deposit form forms documents conditions requirements exceptions
""")
# Adjectives that describe an action rather than a thing: "is it allowed?"
OF_DOING: Final = words("""
free allowed possible necessary compulsory mandatory required safe expensive cheap legal
""")
PERSONS: Final = words("""
adult child children student pupil pensioner senior guest visitor member customer person
people resident tourist employee trainee apprentice infant baby teenager family families
parent spouse tradespeople business company dog cat pet animal erwachsene erwachsener kinder kind studenten
student rentner schüler gäste mitglieder familien
""")
# Verbs after which "they" means the organisation, not something in the earlier
# question.
OF_OFFICES: Final = words("""
need ask want accept require charge offer send keep check call contact cancel do help give
pay say tell see know look
""")
# Function words without meaning of their own, which a model may add or drop.
FREE: Final = FUNCTION - words("""
no not without over under above below before after during until till within inside outside
than through against up more less most least only now again back off out away early late
earlier later something anything nothing everything every each another ever already very
here there online offline abroad overnight today tomorrow once else kein keine keinen nicht
ohne nach vor während bis ab über unter gegen auf aus nur
""")
