"""Makes expected.csv: what calendar.csv says of 200 moments, by Python's datetime and zoneinfo, not by unitape.

    python3 vectors/calendar/make_expected.py > vectors/calendar/expected.csv

Cells of a venue: session date, kind of day, time of close. Cells of a pair: trade date, spot date.
The rule of spot dates is written as sets here: the first date that settles with enough good days up to it.
"""

import csv
import pathlib
import random
from datetime import date, datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

HERE = pathlib.Path(__file__).parent
VENUES = ["XLON", "XNYS", "XCME", "XTKS", "XJSE", "XASX"]
PAIRS = ["EURUSD", "GBPUSD", "USDJPY", "USDCHF", "AUDUSD", "NZDUSD", "USDCAD", "USDZAR", "EURGBP", "USDTRY"]
DAY = timedelta(days=1)

rows = [r for r in csv.reader((HERE / "calendar.csv").open()) if r and not r[0].startswith("#")][1:]
venues = {r[1]: (time.fromisoformat(r[3]), ZoneInfo(r[4])) for r in rows if r[0] == "venue"}
pairs = {r[1].replace("/", ""): (time.fromisoformat(r[3]), ZoneInfo(r[4]), int(r[5])) for r in rows if r[0] == "pair"}
holidays = {(r[1], date.fromisoformat(r[2])) for r in rows if r[0] == "holiday"}
halves = {(r[1], date.fromisoformat(r[2])): r[3] for r in rows if r[0] == "half"}


def session_date(roll, zone, moment):
    local = moment.astimezone(zone)
    reached = local.time() >= roll
    if roll > time(12):
        return local.date() + (DAY if reached else timedelta(0))
    return local.date() - (timedelta(0) if reached else DAY)


def venue_cell(mic, moment):
    day = session_date(*venues[mic], moment)
    if (mic, day) in holidays:
        return f"{day} holiday"
    if (mic, day) in halves:
        return f"{day} half {halves[mic, day]}".strip()
    return f"{day} {'weekend' if day.isoweekday() > 5 else 'open'}"


def pair_cell(pair, moment):
    roll, zone, lag = pairs.get(pair, (time(0), timezone.utc, 1 if pair == "USDTRY" else 2))
    trade = session_date(roll, zone, moment)
    if trade.isoweekday() > 5:
        trade += DAY * (8 - trade.isoweekday())
    currencies = {pair[:3], pair[3:]}
    after = [trade + DAY * n for n in range(40)]
    weekdays = [d for d in after if d.isoweekday() <= 5]
    counted = [d for d in weekdays if d > trade and not any((c, d) in holidays for c in currencies - {"USD"})]
    settling = [d for d in weekdays if not any((c, d) in holidays for c in currencies)]
    spot = next(d for d in settling if sum(c <= d for c in counted) >= lag)
    return f"{trade} {spot}"


def moments():
    """As the command line is given them."""
    # On, before and after the roll: in winter, in the weeks when one side has changed its clocks, in summer.
    for text in ["2026-03-02T23:00:00", "2026-03-06T22:00:00", "2026-03-08T21:00:00", "2026-03-09T22:00:00",
                 "2026-04-02T21:00:00", "2026-10-30T21:00:00", "2026-11-01T22:00:00", "2026-11-02T23:00:00"]:
        yield from beside(text)
    # Changes of clocks: New York, London, Sydney, Auckland, both ways.
    for text in ["2026-03-08T07:00:00", "2026-11-01T06:00:00", "2026-03-29T01:00:00", "2026-10-25T01:00:00",
                 "2026-04-04T16:00:00", "2026-10-03T16:00:00", "2026-04-04T14:00:00", "2026-09-26T14:00:00"]:
        yield from beside(text)
    # Midnights and rolls of each zone, in both halves of the year.
    for day in ["2026-01-15", "2026-07-15"]:
        for clock in ["00:00:00", "22:00:00", "08:30:00", "20:00:00", "21:00:00", "18:00:00", "19:00:00"]:
            yield from beside(f"{day}T{clock}")
    # Holidays, half days, weekends.
    for day in ["2026-01-01", "2026-01-02", "2026-04-03", "2026-04-05", "2026-05-04", "2026-05-22", "2026-07-03",
                "2026-10-12", "2026-11-09", "2026-11-10", "2026-11-24", "2026-11-25", "2026-11-26", "2026-11-27",
                "2026-12-22", "2026-12-23", "2026-12-24", "2026-12-25", "2026-12-26", "2026-12-31"]:
        yield f"{day}T12:00"
    # Other years, and times in other forms.
    yield from ["1999-12-31T23:59:59Z", "2000-02-29 23:30", "2007-03-11T07:00:00", "2006-04-02T07:00", "2024-02-29",
                "2011-03-14 21:00", "1987-10-19T14:30", "1972-06-30T23:59:59", "1970-01-01", "1969-12-31T23:59:59",
                "1968-02-18T02:00", "1941-12-08", "1920-06-01T12:00", "2036-11-02T06:00", "2037-03-29T00:59:59"]
    draw = random.Random(20260302)
    while True:
        yield (datetime(2025, 12, 20) + timedelta(seconds=draw.randrange(385 * 86_400))).isoformat()


def beside(text):
    at = datetime.fromisoformat(text)
    return [(at - timedelta(seconds=1)).isoformat() + ".999999999", text]


def main():
    print(",".join(["at", *VENUES, *PAIRS]))
    for _, text in zip(range(200), moments()):
        plain = text.removesuffix("Z").split(".")[0]
        moment = datetime.fromisoformat(plain).replace(tzinfo=timezone.utc)
        cells = [venue_cell(mic, moment) for mic in VENUES] + [pair_cell(pair, moment) for pair in PAIRS]
        print(",".join([text, *cells]))


main()
