"""A controller that does nothing but say what it is told of ConfigMaps with the label ``keep``, a line of JSON each: by
a watch from the start that is content with the cache, by one that wants to be sure, by an old one, and by lists."""

from __future__ import annotations

import json
import sys
import threading
from urllib.parse import urlencode

from tests.hunt.keepers import PLACE, Client, Refused

_LOCK = threading.Lock()
HOW = {
    "initial": {"watch": "true", "resourceVersion": "0", "sendInitialEvents": "true", "allowWatchBookmarks": "true"},
    "sure": {"watch": "true", "sendInitialEvents": "true", "allowWatchBookmarks": "true"},
    "legacy": {"watch": "true", "resourceVersion": "0"},
}


def say(how: str, what: str, size: str, revision: str) -> None:
    with _LOCK:
        print(json.dumps([how, what, size, int(revision or 0)]), flush=True)


def follow(client: Client, how: str) -> None:
    query = {"labelSelector": "keep", **HOW[how]}
    if "resourceVersionMatch" not in query and "sendInitialEvents" in query:
        query["resourceVersionMatch"] = "NotOlderThan"
    try:
        for line in client.open("GET", f"{PLACE}/configmaps?{urlencode(query)}"):
            event = json.loads(line)
            one = event["object"]
            is_end = (one["metadata"].get("annotations") or {}).get("k8s.io/initial-events-end") == "true"
            if event["type"] != "BOOKMARK" or is_end:
                size = (one.get("data") or {}).get("size", "")
                say(how, event["type"], size, one["metadata"]["resourceVersion"])
    except Refused as error:
        say(how, "refused", str(error.code), "0")


def main() -> None:
    client = Client(sys.argv[1])
    for how in ("", "0"):
        query = {"labelSelector": "keep", "resourceVersion": how}
        found = client.ask("GET", f"{PLACE}/configmaps?{urlencode(query)}")
        sizes = [one["data"]["size"] for one in found["items"]]
        say(f"list {how}", "LIST", " ".join(sizes), found["metadata"]["resourceVersion"])
    threads = [threading.Thread(target=follow, args=(client, how)) for how in HOW]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    threading.Event().wait()


if __name__ == "__main__":
    main()
