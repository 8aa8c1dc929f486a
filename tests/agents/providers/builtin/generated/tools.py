"""Requests that want tools, or none."""

from __future__ import annotations

from functools import partial
from random import Random
from typing import Any

from organism.model.tool import ToolSpec
from tests.agents.providers.asking import tool
from tests.agents.providers.builtin.generated.case import Case, wrong_calls
from tests.agents.providers.builtin.generated.phrases import Phrases
from tests.agents.providers.builtin.generated.slots import slots

WEIGHTS = {"sum": 6, "time": 3, "none": 2, "both": 2}
"""How often a kind of phrases is taken, where that is not once."""
TEXT = {"type": "string"}
WHOLE = {"type": "integer"}
ZONE = {**TEXT, "description": "An IANA zone such as Europe/Berlin; UTC if left out.", "default": "UTC"}
TOOLS = (
    tool("calculator", "Computes an arithmetic expression exactly.", expression=TEXT),
    ToolSpec(
        "current_datetime",
        "Tells the current date and time in a time zone.",
        {"type": "object", "properties": {"zone": ZONE}},
    ),
    tool("wikipedia_summary", "Gives the summary of a Wikipedia article by its title.", title=TEXT),
    tool("http_fetch", "Fetches a page by its URL with GET and gives its text.", url=TEXT),
    tool("key_value_get", "Gives the text that is kept under a key.", key=TEXT),
    tool("key_value_set", "Keeps a text under a key, for later threads too.", key=TEXT, value=TEXT),
    tool("key_value_delete", "Deletes what is kept under a key.", key=TEXT),
    tool("get_weather", "Current weather and forecast for a city.", city=TEXT),
    tool("send_email", "Send an e-mail.", to={**TEXT, "format": "email"}, subject=TEXT),
    tool(
        "convert_currency",
        "Convert an amount of money from one currency to another.",
        amount={"type": "number"},
        from_currency={**TEXT, "description": "ISO code, e.g. USD"},
        to_currency={**TEXT, "description": "ISO code, e.g. EUR"},
    ),
    tool("translate_text", "Translates a text.", text=TEXT, target_language=TEXT),
    tool("create_reminder", "Creates a reminder for the user.", text=TEXT),
    tool("find_contact", "Looks up a person in the address book.", name=TEXT),
    tool("stock_quote", "Latest price of a share.", symbol={**TEXT, "description": "Ticker symbol, e.g. AAPL"}),
    tool("roll_dice", "Roll dice.", count=WHOLE, sides=WHOLE),
    tool("book_table", "Reserves a table in a restaurant.", guests=WHOLE, date={**TEXT, "format": "date"}),
    tool("play_song", "Plays a song from the music library.", title=TEXT),
    tool("set_timer", "Starts a countdown timer.", minutes=WHOLE),
    tool("distance", "The distance between two places.", origin=TEXT, destination=TEXT),
    tool("define_word", "Dictionary definition of an English word.", word=TEXT),
    tool("delete_file", "Removes a file from disk.", path=TEXT),
    tool("locate_ip", "Finds out where an IP address is.", ip=TEXT),
    tool("forecast", "Weather forecast for a location.", location=TEXT),
    tool("create_event", "Adds an event to the calendar.", title=TEXT, date={**TEXT, "format": "date"}),
    tool("generate_uuid", "Makes a new random UUID."),
    tool("unit_convert", "Converts kilometres to miles.", kilometres={"type": "number"}),
    tool("switch_light", "Turns on the light in a room.", room=TEXT),
    tool("flight_status", "Tells whether a flight is on time.", flight={**TEXT, "description": "Such as LH123."}),
    tool("open_ticket", "Opens a ticket in the issue tracker.", summary=TEXT),
    tool("count_words", "Counts the words of a text.", text=TEXT),
    tool("route", "The way between two places by car.", start=TEXT, end=TEXT),
    tool("sunset", "Tells when the sun sets at a place.", place=TEXT),
    tool("find_recipe", "Searches cooking recipes.", dish=TEXT),
    tool("send_message", "Sends a short message to one of the contacts.", to=TEXT, text=TEXT),
    tool("play_radio", "Plays a radio station.", station=TEXT),
    tool("bus_departures", "Next departures of buses at a stop.", stop=TEXT),
    tool("set_alarm", "Sets an alarm clock.", time={**TEXT, "description": "Such as 07:30."}),
    tool("read_file", "Reads a file and gives its content.", path=TEXT),
    tool("dns_lookup", "Resolves a host name to its IP addresses.", host=TEXT),
    tool("tell_joke", "Tells a joke about a topic.", topic=TEXT),
    tool("book_hotel", "Books a hotel room in a city.", city=TEXT, nights=WHOLE),
    tool("pay_invoice", "Pays an invoice.", invoice_number=TEXT),
    tool("random_number", "Draws a random number between two bounds.", minimum=WHOLE, maximum=WHOLE),
    tool("list_users", "Lists all users of the system."),
    tool("order_status", "Tells how far an order is.", order_id=TEXT),
    tool("cancel_order", "Cancels an order.", order_id=TEXT),
    tool("set_thermostat", "Sets the temperature that a room is heated to.", room=TEXT, degrees={"type": "number"}),
    tool("add_to_shopping_list", "Puts an item on the shopping list.", item=TEXT),
    tool("train_connections", "Next trains from one station to another.", from_station=TEXT, to_station=TEXT),
    tool("public_holidays", "The public holidays of a country in a year.", country=TEXT, year=WHOLE),
    tool("generate_password", "Makes a random password.", length={**WHOLE, "minimum": 1}),
    tool("ping_host", "Checks whether a host can be reached.", host=TEXT),
    tool("create_note", "Writes a note.", text=TEXT),
    tool("move_file", "Moves a file to another folder.", source=TEXT, target=TEXT),
    tool("restart_service", "Restarts a system service.", service={**TEXT, "description": "Its name, such as sshd."}),
    tool("transfer_money", "Transfers money to somebody.", amount={"type": "number"}, recipient=TEXT),
    tool("set_volume", "Sets how loud the speakers are.", level={**WHOLE, "description": "In percent."}),
    tool("search_flights", "Searches flights.", origin=TEXT, destination=TEXT, date={**TEXT, "format": "date"}),
    tool("call_contact", "Calls a person on the phone.", name=TEXT),
    tool("switch_device", "Switches a device on or off.", device=TEXT, state={"enum": ["on", "off"]}),
    tool("shorten_url", "Makes a short link for a URL.", url={**TEXT, "format": "uri"}),
    tool("list_tasks", "Shows what is on the to-do list."),
    tool("track_parcel", "Tells where a parcel is.", tracking_number=TEXT),
    tool(
        "add_expense", "Records an expense.", amount={"type": "number"}, category={"enum": ["travel", "food", "office"]}
    ),
    tool("water_garden", "Waters the garden.", minutes=WHOLE),
    tool("lock_door", "Locks a door.", door=TEXT),
    tool("vacuum_room", "Sends the vacuum robot to clean a room.", room=TEXT),
    tool("rename_file", "Gives a file another name.", path=TEXT, new_name=TEXT),
    tool("movie_showtimes", "When a film is shown in the cinemas of a city.", movie=TEXT, city=TEXT),
    tool("find_restaurant", "Finds restaurants by their cuisine.", cuisine=TEXT, city=TEXT),
    tool("create_branch", "Creates a branch in a repository.", repository=TEXT, branch=TEXT),
    tool("tail_log", "Shows the last lines of a service's log.", service=TEXT, lines=WHOLE),
    tool("moon_phase", "The phase of the moon on a day.", date={**TEXT, "format": "date"}),
    tool("air_quality", "How clean the air of a city is.", city=TEXT),
    tool("celsius_to_fahrenheit", "Converts a temperature.", celsius={"type": "number"}),
    tool("invite_guest", "Invites somebody to an event.", name=TEXT, event=TEXT),
    tool("cancel_booking", "Cancels a booking by its code.", booking_code=TEXT),
    tool("play_podcast", "Plays the newest episode of a podcast.", title=TEXT),
    tool("mute_speakers", "Turns off the sound."),
    tool("spell_check", "Checks the spelling of a text.", text=TEXT),
    tool("horoscope", "Today's horoscope.", sign={"enum": ["aries", "leo", "virgo", "libra", "pisces"]}),
    tool("battery_status", "How much charge the battery of a device has.", device=TEXT),
    tool("order_taxi", "Orders a taxi.", pickup=TEXT, time={**TEXT, "description": "Such as 07:30."}),
    tool("set_brightness", "Sets the brightness of the lamps in a room.", room=TEXT, percent=WHOLE),
    tool("start_dishwasher", "Starts the dishwasher.", program={"enum": ["eco", "intensive", "quick"]}),
    tool("find_parking", "Finds free parking spaces at a place.", place=TEXT),
    tool("crypto_price", "Current price of a cryptocurrency.", coin=TEXT),
    tool("create_invoice", "Creates an invoice for a customer.", customer=TEXT, amount={"type": "number"}),
    tool("vacation_days", "How many days of vacation an employee has left.", employee=TEXT),
    tool("deploy_service", "Deploys a service.", service=TEXT, environment={"enum": ["staging", "production"]}),
    tool("merge_pull_request", "Merges a pull request.", number=WHOLE),
    tool("disk_usage", "How full the disk of a server is.", server=TEXT),
    tool("reset_password", "Resets the password of a user.", username=TEXT),
    tool("nutrition_facts", "Calories and nutrients of a food.", food=TEXT),
    tool("log_workout", "Records a workout.", sport=TEXT, minutes=WHOLE),
    tool("get_lyrics", "The lyrics of a song.", song=TEXT),
    tool("next_match", "When a team plays its next match.", team=TEXT),
    tool("find_synonyms", "Other words with the same meaning.", word=TEXT),
    tool("flip_coin", "Flips a coin."),
    tool("print_document", "Prints a document.", path=TEXT, copies=WHOLE),
    tool("unread_mails", "Lists the mails that are not read yet."),
    tool("subscribe_newsletter", "Subscribes an address to the newsletter.", email={**TEXT, "format": "email"}),
    tool("donate", "Donates money to a charity.", amount={"type": "number"}, charity=TEXT),
    tool("redeem_voucher", "Redeems a voucher by its code.", code=TEXT),
    tool("preheat_oven", "Heats the oven.", degrees=WHOLE),
    tool("move_blinds", "Opens or closes the blinds of a room.", room=TEXT, position={"enum": ["open", "closed"]}),
    tool("recommend_movie", "Recommends a film.", genre={"enum": ["comedy", "thriller", "drama", "western"]}),
    tool("due_date", "When a book of the library is due.", title=TEXT),
    tool("extend_loan", "Extends the loan of a book of the library.", title=TEXT),
    tool("search_logs", "Searches the logs.", query=TEXT),
    tool("scale_service", "Changes how many replicas of a service run.", service=TEXT, replicas=WHOLE),
    tool("backup_database", "Makes a backup of a database.", database=TEXT),
    tool("assign_issue", "Assigns an issue to somebody.", number=WHOLE, assignee=TEXT),
    tool("stock_level", "How many pieces of an article the warehouse has.", sku=TEXT),
    tool("refund_order", "Pays the money of an order back.", order_id=TEXT),
    tool("book_appointment", "Makes an appointment with a doctor.", doctor=TEXT, date={**TEXT, "format": "date"}),
    tool("car_charge", "How full the battery of the car is."),
    tool("mow_lawn", "Starts the robot that mows the lawn."),
    tool("rate_song", "Gives a song so many stars.", title=TEXT, stars={**WHOLE, "minimum": 1, "maximum": 5}),
    tool("canteen_menu", "What the canteen serves today."),
    tool("recent_earthquakes", "Recent earthquakes near a place.", place=TEXT),
    tool("find_events", "Events in a city on a day.", city=TEXT, date={**TEXT, "format": "date"}),
)


def tool_case(random: Random, phrases: Phrases) -> Case:
    """A request, with the tools that it wants among some that it does not."""
    language = random.choice(["en", "de"])
    kind = random.choices(list(phrases.tools), [WEIGHTS.get(kind, 1) for kind in phrases.tools])[0]
    text, calls = random.choice(phrases.tools[kind][language])
    said = slots(random, language)
    wanted = [(name, {key: of.format(**said) for key, of in arguments.items()}) for name, arguments in calls.items()]
    offered = {spec.name: spec for spec in TOOLS}
    names = [*calls, *(name for name in random.sample(sorted(offered), random.randint(2, 6)) if name not in calls)]
    random.shuffle(names)
    messages: list[Any] = []
    if random.random() < 0.5:
        messages.append({"role": "system", "content": "You are a helpful assistant."})
    if random.random() < 0.3:
        messages += [{"role": "user", "content": "Hi!"}, {"role": "assistant", "content": "Hello!"}]
    messages.append({"role": "user", "content": text.format(**said)})
    return Case(messages, wanted, partial(wrong_calls, wanted), [offered[name] for name in names])
