"""Subscriptions and storms in memory, for tests, ours and those of Duetime's users."""

import threading
from collections.abc import Sequence
from dataclasses import replace

from duetime.storms import Window, WindowKey
from duetime.subscriptions import Subscription


class MemorySubscriptions:
    def __init__(self) -> None:
        self._subscriptions: dict[tuple[str, str], Subscription] = {}

    def add(self, subscription: Subscription) -> Subscription | None:
        key = (subscription.owner, subscription.subscription_id)
        there = self._subscriptions.setdefault(key, subscription)
        return None if there is subscription else there

    def get(self, owner: str, subscription_id: str) -> Subscription | None:
        return self._subscriptions.get((owner, subscription_id))

    def of_owner(self, owner: str) -> Sequence[Subscription]:
        found = [each for each in self._subscriptions.values() if each.owner == owner]
        return sorted(found, key=lambda each: (each.created_at, each.subscription_id))

    def remove(self, owner: str, subscription_id: str) -> Subscription | None:
        return self._subscriptions.pop((owner, subscription_id), None)


class MemoryStorms:
    def __init__(self) -> None:
        self._windows: dict[WindowKey, Window] = {}
        self._lock = threading.Lock()

    def window(self, key: WindowKey) -> Window:
        return self._windows.get(key, Window(key))

    def exchange(self, seen: Window, after: Window) -> bool:
        with self._lock:
            if self.window(seen.key).version != seen.version:
                return False
            self._windows[seen.key] = replace(after, version=seen.version + 1)
            return True
