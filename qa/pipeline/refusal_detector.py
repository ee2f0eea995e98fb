"""Detection of refusals in prose, as opposed to answers that mention refusing.

Rules, not a model. A refusal is about its speaker's own knowledge ("I don't know") or
about the material that the speaker was given ("the context does not say"). A fact about
the world may use the same words ("the Unknown Soldier", "we cannot refund a cash
advance", "if the evidence is insufficient, the dispute is closed").
"""

import re
import unicodedata
from functools import cache

from kb.text.words import sentences

_APOSTROPHES = re.compile("[\u2018\u2019\u02bc\u00b4`]")
_QUOTED = re.compile(
    '["\u201c\u201d\u201e\u00ab\u00bb][^"\u201c\u201d\u201e\u00ab\u00bb]*["\u201c\u201d\u00ab\u00bb]'
)
_CONDITION = re.compile(r"\b(?:if|when|whenever|unless|where|wenn|falls|sofern)\b")

_FILL = r"(?:(?:really|currently|just|simply|honestly|also|still|yet|therefore|unfortunately|explicitly|directly|specifically|clearly|actually|leider|hier|dazu|darüber|hierzu|hierüber|derzeit|ihnen|dir|diese|das|es|die|frage)\s+)*"
_CANNOT = r"(?:can\s?not|can't|cant|could\s+not|couldn't|am\s+not\s+able\s+to|'m\s+not\s+able\s+to|am\s+unable\s+to|'m\s+unable\s+to|are\s+not\s+able\s+to|are\s+unable\s+to)"
_DO_NOT = r"(?:do\s+not|don't|dont|did\s+not|didn't)"
_NO = r"(?:no|not\s+enough|not\s+any|insufficient|too\s+little|nothing)"
_FACTS = r"(?:information|knowledge|evidence|context|data|details?|answer|idea|clue|mention|record|indication)"
_GIVEN = r"(?:provided|given|available|supplied|retrieved|above|following)"
_MATERIAL = (
    r"(?:"
    r"(?:context|evidence|knowledge\s+base|passages?|excerpts?|sources?)"
    rf"|{_GIVEN}\s+(?:information|knowledge|facts?|statements?|entries|material|data|texts?|documents?|content)"
    rf"|(?:information|knowledge|facts?|statements?|entries|material|data|texts?|documents?)\s+(?:{_GIVEN}|i\s+(?:have|was\s+given))"
    r")"
)
_SAY = r"(?:say|state|mention|contain|specify|cover|provide|include|tell|answer|address|give|indicate|explain|support|describe|discuss|reveal|have)"
_SAID = r"(?:mentioned|specified|stated|provided|given|found|covered|included|contained|answered|available|addressed|described|discussed|present)"

_BY_THE_SPEAKER = (
    # "I" is always the one who answers; "we" may be the organisation, whose own limits
    # ("we cannot refund") are facts.
    rf"\bi\s*{_CANNOT}\s+{_FILL}(?:answer|say|tell|help|assist|provide|find|determine|confirm|verify|respond|comment|comply|locate|give|be\s+(?:sure|certain)|see)\b",
    rf"\bi\s+{_FILL}{_DO_NOT}\s+{_FILL}(?:know|have|see|find|recall|understand)\b",
    r"\bi\s*(?:am|'m)\s+(?:really\s+|just\s+)?(?:not\s+(?:sure|certain|aware|familiar)|unsure|uncertain)\b",
    rf"\bi\s*(?:have|'ve|'ve\s+got)\s+{_NO}\s+(?:\w+\s+)?{_FACTS}\b",
    r"\bi\s+(?:(?:must|have\s+to|need\s+to|will)\s+)?(?:decline|refuse|abstain)\b",
    r"\bi\s+lack\s+(?:\w+\s+)?(?:information|knowledge|context|evidence|data)\b",
    r"\bi\s+(?:would\s+|'d\s+)?need\s+(?:some\s+)?(?:more|additional|further)\s+(?:information|context|details?|data)\b",
    r"\b(?:that|this|it)(?:'s|\s+is)\s+(?:outside|beyond)\s+(?:of\s+)?(?:my\b|what\s+i\b)",
    rf"\bwe\s+{_FILL}(?:{_DO_NOT}\s+{_FILL}know|have\s+{_NO}\s+(?:\w+\s+)?(?:information|knowledge|evidence))\b",
    rf"\bwe\s*{_CANNOT}\s+{_FILL}(?:answer\s+(?:this|that|the|your)|(?:say|determine)\b)",
    r"\bas\s+an?\s+(?:ai|language\s+model)\b.{0,60}\b(?:not|n't|cannot|can't|unable)\b",
    rf"\bich\s+(?:weiß|weiss)\s+{_FILL}(?:nicht|keine)\b",
    r"\b(?:das|dies|es)\s+(?:weiß|weiss)\s+ich\s+(?:leider\s+)?nicht\b",
    r"\b(?:wir\s+wissen|wissen\s+wir)\s+(?:es\s+|das\s+|leider\s+)*nicht\b",
    rf"\b(?:kann|konnte|darf)\s+ich\s+{_FILL}(?:\w+\s+){{0,4}}(?:nicht|keine?n?|nichts)\b",
    rf"\bich\s+(?:kann|konnte|darf)\s+{_FILL}(?:\w+\s+){{0,6}}(?:nicht|keine?n?|nichts)\b",
    rf"\b(?:ich\s+(?:habe|finde)|(?:habe|finde)\s+ich)\s+{_FILL}(?:keine?n?|nichts)\b",
    r"\b(?:ich\s+bin|bin\s+ich)\s+(?:mir\s+)?(?:leider\s+)?nicht\s+sicher\b",
    r"\b(?:liegen|liegt)\s+(?:mir|uns)\s+(?:\w+\s+){0,2}(?:keine?|nicht|nichts)\b",
)
_ABOUT_THE_MATERIAL = (
    rf"\b{_MATERIAL}\s+(?:{_DO_NOT}|does\s+not|doesn't|cannot|can't)\s+{_FILL}(?:seem\s+to\s+|appear\s+to\s+)?{_SAY}\b",
    rf"\b{_MATERIAL}\s+(?:(?:is|are|was|were)\s+(?:not\s+(?:enough|sufficient)|insufficient|silent)|(?:isn't|aren't)\s+(?:enough|sufficient))\b",
    rf"(?:\bnot|n't|\b(?:none|nothing)\s+(?:of\s+\w+\s+)?(?:is|was))\s+{_FILL}{_SAID}\s+(?:anywhere\s+)?(?:in|by|from)\s+(?:any\s+of\s+)?(?:the\s+|this\s+|these\s+|my\s+)?{_MATERIAL}\b",
    rf"\b(?:nothing|no\s+(?:\w+\s+)?{_FACTS})\s+(?:(?:about|on|of|regarding|for)\s+.{{1,60}}?\s+)?(?:in|from)\s+(?:the\s+|this\s+|these\s+|my\s+)?{_MATERIAL}\b",
    rf"\bthere(?:'s|\s+is|\s+are)\s+{_NO}\s+(?:\w+\s+)?{_FACTS}\s*(?:(?:about|on|regarding|concerning|in\s+the|to\s+(?:answer|determine)|available|provided|given|here)\b|[.!]*$)",
    r"\b(?:cannot|can't|can\s+not|could\s+not|couldn't)\s+be\s+(?:answered|determined|derived|inferred)\b",
    rf"\bnot\s+enough\s+{_FACTS}\s+(?:to\s+(?:answer|say|determine|tell)|is\s+(?:given|available|provided))\b",
    # Delivery notes may well "not contain" something: only the notes shown are meant.
    rf"^(?:the|these|my)\s+(?:notes|search\s+results)\s+(?:{_DO_NOT})\s+{_FILL}{_SAY}\b",
    rf"\bthe\s+(?:{_GIVEN}\s+)?(?:notes|text|search\s+results|{_MATERIAL})\s+(?:give|gives|provide|provides|contain|contains|hold|holds)\s+no\s+(?:\w+\s+)?{_FACTS}\b",
    r"\b(?:more|additional|further)\s+(?:information|context|details?|data)\s+(?:is|are|would\s+be)\s+(?:needed|required|necessary)(?:\s+to\s+(?:answer|say|tell|determine)\b|[\s.!]*$)",
    r"\b(?:aus|anhand)\s+(?:dem|den|der|diesen|diesem)\s+(?:\w+\s+)?(?:kontext|informationen|angaben|belegen|quellen|wissensbasis|einträgen)\b.{0,60}\bnicht\b",
    r"\b(?:geht|ergibt|lässt)\b.{0,50}\bnicht\s+(?:aus|anhand)\s+(?:dem|den|der)\b.{0,30}\b(?:kontext|informationen|angaben|belegen|quellen|wissensbasis|einträgen)\b",
    r"\b(?:der|die|den)\s+(?:\w+\s+)?(?:kontext|informationen|angaben|belege|quellen|wissensbasis|einträge)\s+(?:enthalten|enthält|sagen|sagt|nennen|nennt|reichen|reicht|geben|gibt)\b.{0,60}\b(?:nicht|keine?n?|nichts)\b",
    r"\b(?:dazu|darüber|hierzu|hierüber)\s+(?:liegen|liegt|gibt|steht)\s+(?:\w+\s+){0,3}(?:keine?n?|nichts)\b",
    r"\b(?:die|diese|ihre)\s+frage\s+(?:kann|konnte|lässt\s+sich)\b.{0,50}\bnicht\b",
)
# The whole sentence, except for an apology before it.
_BARE = (
    r"(?:unknown|unanswerable|not\s+answerable|dunno|no\s+(?:answer|idea|information)(?:\s+(?:is\s+)?(?:available|given|provided|found))?)",
    r"(?:(?:cannot|can't|can\s+not|unable\s+to)\s+(?:answer|say|tell|help|determine)(?:\s+(?:this|that|it|the\s+question))?)",
    r"(?:(?:don't|do\s+not|doesn't|does\s+not)\s+(?:know|say))",
    r"(?:(?:it\s+is\s+|this\s+is\s+|that\s+is\s+|it's\s+|that's\s+)?not\s+(?:known|mentioned|specified|stated|provided|sure))",
    r"(?:(?:the|that|this|such)\s+information\s+(?:is\s+not|isn't|has\s+not\s+been|hasn't\s+been)\s+(?:available|disclosed|provided|given|known))",
    r"(?:the\s+(?:exact\s+|correct\s+)?answer\s+(?:is|remains)\s+(?:not\s+known|unknown|unclear|uncertain))",
    r"(?:(?:it\s+is|it's)\s+(?:impossible|not\s+possible)\s+to\s+(?:say|tell|know|determine|answer)(?:\s+(?:that|this|it|the\s+(?:answer|question)|for\s+(?:sure|certain)))?)",
    r"(?:there(?:'s|\s+is)\s+no\s+way\s+to\s+(?:say|tell|know|determine)(?:\s+(?:that|this|it|for\s+(?:sure|certain)))?)",
    r"(?:(?:no\s?one|nobody)\s+(?:really\s+)?knows(?:\s+(?:that|this|it|the\s+answer|for\s+(?:sure|certain)))?)",
    r"(?:insufficient\s+(?:information|evidence|context|data)|not\s+enough\s+(?:information|evidence|context))",
    r"(?:keine\s+(?:ahnung|antwort|informationen|angaben?)(?:\s+(?:verfügbar|vorhanden))?|unbekannt|nicht\s+(?:bekannt|angegeben|beantwortbar)|(?:weiß|weiss)\s+(?:ich\s+)?nicht)",
    r"(?:(?:i'm\s+|i\s+am\s+)?(?:so\s+|very\s+)?sorry|apologies|tut\s+mir\s+leid|es\s+tut\s+mir\s+leid)",
)

_SPEAKER = "|".join(_BY_THE_SPEAKER)
_MATERIAL_SAYS_NOT = "|".join(_ABOUT_THE_MATERIAL)
_BARE_REFUSAL = (
    r"^(?:(?:i'm\s+|i\s+am\s+)?sorry|unfortunately|apologies|leider|tut\s+mir\s+leid)?[\s,:;.!-]*"
    rf"(?:{'|'.join(_BARE)})[\s.!]*$"
)


def is_refusal(text: str) -> bool:
    """Return whether any sentence of `text` refuses to answer, in English or German.

    A partial answer ("the fee is 30 euro, I don't know since when") counts as a
    refusal; words inside quotation marks are someone else's and do not count.
    """
    return any(_refuses(sentence) for sentence in sentences(text))


@cache
def compiled_patterns() -> tuple[re.Pattern[str], ...]:
    """Compile the patterns on first use: it takes 0.1 s, which most processes save."""
    return tuple(map(re.compile, (_SPEAKER, _BARE_REFUSAL, _MATERIAL_SAYS_NOT)))


def _refuses(sentence: str) -> bool:
    said = unicodedata.normalize("NFKC", sentence).lower()
    said = _APOSTROPHES.sub("'", said).strip(" \"'\u201c\u201d\u201e\u00ab\u00bb*_")
    said = " ".join(_QUOTED.sub(" ", said).split())
    speaker, bare, material_says_not = compiled_patterns()
    if speaker.search(said) or bare.search(said):
        return True
    found = material_says_not.search(said)
    return found is not None and not _CONDITION.search(said[: found.start()])
