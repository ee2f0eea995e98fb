"""What Slack and Teams send, as their documentation shows it, with other texts and ids.

- https://docs.slack.dev/authentication/verifying-requests-from-slack (the signed command)
- https://docs.slack.dev/apis/events-api and /reference/events/app_mention, message.im
- https://docs.slack.dev/interactivity/implementing-slash-commands
- https://docs.slack.dev/reference/interaction-payloads/block_actions-payload
- https://docs.slack.dev/reference/methods/users.info, auth.test and chat.postMessage
- https://learn.microsoft.com/microsoftteams/platform/webhooks-and-connectors/how-to/add-outgoing-webhook
"""

from typing import Any

# Signed there with this secret at this second; the body with all that it holds.
DOCUMENTED_SECRET = "8f742231b10e8888abcd99yyyzzz85a5"
DOCUMENTED_SECOND = 1531420618
DOCUMENTED_SIGNATURE = (
    "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
)
DOCUMENTED_BODY = (
    "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow"
    "&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner"
    "&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com"
    "%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN"
    "&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
)

CHALLENGE = {
    "token": "Jhj5dZrVaK7ZwHHjRyZWjbDl",
    "challenge": "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P",
    "type": "url_verification",
}


def event(inner: dict[str, Any], event_id: str) -> dict[str, Any]:
    """Return an event in the wrapper that all events have."""
    return {
        "token": "ZZZZZZWSxiZZZ2yIvs3peJ",
        "team_id": "T123ABC456",
        "api_app_id": "A123ABC456",
        "event": inner,
        "type": "event_callback",
        "event_id": event_id,
        "event_time": 1515449522,
        "authorizations": [
            {
                "enterprise_id": None,
                "team_id": "T123ABC456",
                "user_id": "U0LAN0Z89",
                "is_bot": True,
                "is_enterprise_install": False,
            }
        ],
        "is_ext_shared_channel": False,
        "event_context": "4-eyJldCI6ImFwcF9tZW50aW9uIn0",
    }


def mention(text: str, *, event_id: str = "Ev123ABC456") -> dict[str, Any]:
    inner = {
        "type": "app_mention",
        "user": "U061F7AUR",
        "text": f"<@U0LAN0Z89> {text}",
        "ts": "1515449522.000016",
        "channel": "C123ABC456",
        "event_ts": "1515449522000016",
    }
    return event(inner, event_id)


def direct_message(text: str, **more: str) -> dict[str, Any]:
    inner = {
        "type": "message",
        "channel": "D024BE91L",
        "user": "U061F7AUR",
        "text": text,
        "ts": "1355517523.000005",
        "event_ts": "1355517523.000005",
        "channel_type": "im",
        **more,
    }
    return event(inner, "Ev0PV52K21")


def command(text: str) -> dict[str, str]:
    return {
        "token": "gIkuvaNzQIHg97ATvDxqgjtO",
        "team_id": "T0001",
        "team_domain": "example",
        "channel_id": "C2147483705",
        "channel_name": "test",
        "user_id": "U061F7AUR",
        "user_name": "Steve",
        "command": "/nescio",
        "text": text,
        "response_url": "https://hooks.slack.com/commands/1234/5678",
        "trigger_id": "13345224609.738474920.8088930838d88f008e0",
        "api_app_id": "A123456",
    }


def press(action_id: str, value: str, *, user: str = "U061F7AUR") -> dict[str, Any]:
    return {
        "type": "block_actions",
        "team": {"id": "T9TK3CUKW", "domain": "example"},
        "user": {"id": user, "username": "jtorrance", "team_id": "T9TK3CUKW"},
        "api_app_id": "AABA1ABCD",
        "token": "9s8d9as89d8as9d8as989",
        "container": {
            "type": "message",
            "message_ts": "1548261231.000200",
            "channel_id": "CBR2V3XEX",
            "is_ephemeral": False,
        },
        "trigger_id": "12321423423.333649436676.d8c1bb837935619ccad0f624c448ffb3",
        "channel": {"id": "CBR2V3XEX", "name": "review-updates"},
        "message": {
            "bot_id": "BAH5CA16Z",
            "type": "message",
            "ts": "1548261231.000200",
        },
        "response_url": "https://hooks.slack.com/actions/AABA1ABCD/1232321423432/D09sSasdasdAS9091209",
        "actions": [
            {
                "action_id": action_id,
                "block_id": "=qXel",
                "text": {"type": "plain_text", "text": "Helpful", "emoji": True},
                "value": value,
                "type": "button",
                "action_ts": "1548426417.840180",
            }
        ],
    }


OWN_WORKSPACE = {
    "ok": True,
    "url": "https://example.slack.com/",
    "team": "Example",
    "user": "nescio",
    "team_id": "T123ABC456",
    "user_id": "U0BOT",
}


def person(mail: str, **more: object) -> dict[str, Any]:
    return {
        "ok": True,
        "user": {
            "id": "U061F7AUR",
            "team_id": "T123ABC456",
            "name": "spengler",
            "deleted": False,
            "real_name": "Egon Spengler",
            "profile": {
                "real_name": "Egon Spengler",
                "email": mail,
                "team": "T123ABC456",
            },
            "is_bot": False,
            "is_restricted": False,
            "is_email_confirmed": True,
            **more,
        },
    }


POSTED = {"ok": True, "channel": "C123ABC456", "ts": "1503435956.000247"}


def teams_message(text: str) -> dict[str, Any]:
    return {
        "type": "message",
        "id": "1485983408511",
        "timestamp": "2017-02-01T21:10:07.437Z",
        "localTimestamp": "2017-02-01T14:10:07.437-07:00",
        "serviceUrl": "https://smba.trafficmanager.net/amer/",
        "channelId": "msteams",
        "from": {
            "id": "29:1XJKJMvc5GBtc2JwZq0oj8tHZmzrQgFmB39ATiQWA85gQtHieVkKilBZ9XHoq9j7Zaqt7CZ-NJWi7me2kHTL3Bw",
            "name": "Richard Moe",
            "aadObjectId": "ae361bee-9946-4082-99dc-6994b00ceebb",
        },
        "conversation": {
            "isGroup": True,
            "id": "19:cbe3683f25094106b826c9cada3afbe0@thread.skype;messageid=1485983408511",
            "conversationType": "channel",
        },
        "recipient": None,
        "textFormat": "plain",
        "attachmentLayout": None,
        "text": f"<at>Nescio</at> {text}\n",
        "attachments": [],
        "entities": [],
        "channelData": {
            "teamsChannelId": "19:cbe3683f25094106b826c9cada3afbe0@thread.skype",
            "teamsTeamId": "19:253b1f341670408fb6fcd3dae97e6c4d@thread.skype",
        },
        "replyToId": None,
    }
