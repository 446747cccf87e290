"""A sink in twenty lines: each record is posted to a chat, as Slack's incoming webhooks take it.

ottla connect run examples/connect/chat.json
"""

import json
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from ottla.connect import spi


class Config(spi.Config):
    webhook_url: spi.Secret
    text: str = "{value}"


class Chat(spi.Sink[Config]):
    def write(self, batch: spi.Batch) -> spi.Verdicts:
        refused = []
        for at, record in enumerate(batch.records):
            body = json.dumps({"text": self.config.text.format(value=record.value, topic=record.topic)})
            request = Request(self.config.webhook_url, body.encode(), {"Content-Type": "application/json"})
            try:
                urlopen(request, timeout=10).close()
            except HTTPError as error:
                error.close()
                if error.code >= 500:
                    raise spi.TryAgain(f"the chat answered {error.code}") from error
                refused.append(spi.Refused(at, f"the chat answered {error.code}"))
            except OSError as error:
                raise spi.TryAgain(f"the chat is away: {error}") from error
        return refused
