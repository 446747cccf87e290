"""A source in twenty lines: the weather of a city, one record for each new observation.

ottla connect run examples/connect/weather.json
"""

import json
from urllib.request import urlopen

from ottla.connect import spi


class Config(spi.Config):
    latitude: float
    longitude: float
    topic: str = "weather"
    url: str = "https://api.open-meteo.com/v1/forecast"
    poll_interval_ms: int = 60_000


class Weather(spi.Source[Config]):
    def read(self, start: spi.Offset | None, limit: int) -> spi.Read:
        config = self.config
        place = f"latitude={config.latitude}&longitude={config.longitude}"
        try:
            with urlopen(f"{config.url}?{place}&current_weather=true", timeout=10) as answer:
                now = json.load(answer)["current_weather"]
        except OSError as error:
            raise spi.TryAgain(f"{config.url}: {error}") from error
        if start is not None and start["time"] == now["time"]:
            return spi.Read((), None)
        return spi.Read([spi.Row(config.topic, now, key=place)], end={"time": now["time"]})

    def poll_interval_ms(self) -> int:
        return self.config.poll_interval_ms
