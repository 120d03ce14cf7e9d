"""The cache of names that other drivers announce."""

from windtunnel.driver.channel.socket_address import SocketAddress
from windtunnel.driver.media_driver.name_resolution import name_cache
from windtunnel.driver.media_driver.name_resolution.name_cache import CacheEntry, NameCache

V4, V6 = SocketAddress("10.0.0.1", 8050), SocketAddress("fd00::1", 8050)


def test_the_latest_address_of_a_name_is_used_and_ipv4_is_preferred():
    cache = NameCache(100)
    cache.add_or_update(CacheEntry("A", V6, 0))
    assert cache.find("A") == V6
    cache.add_or_update(CacheEntry("A", SocketAddress("10.9.9.9", 1), 0))
    cache.add_or_update(CacheEntry("A", V4, 1))
    assert cache.find("A") == V4
    assert len(cache) == 2
    assert cache.find("a") is None


def test_a_name_is_removed_at_its_timeout_and_not_before():
    cache = NameCache(100)
    cache.add_or_update(CacheEntry("A", V4, 5))
    assert cache.expire(104) == 0
    assert cache.find("A") == V4
    assert cache.expire(105) == 1
    assert cache.find("A") is None


def test_a_name_that_is_announced_again_stays():
    cache = NameCache(100)
    cache.add_or_update(CacheEntry("A", V4, 5))
    cache.add_or_update(CacheEntry("A", V4, 50))
    assert cache.expire(149) == 0
    assert cache.expire(150) == 1


def test_the_number_of_names_is_limited(monkeypatch):
    monkeypatch.setattr(name_cache, "ENTRIES_MAX", 3)
    cache = NameCache(100)
    added = [cache.add_or_update(CacheEntry(f"n{index}", V4, 0)) for index in range(5)]
    assert added == [True, True, True, False, False]
    assert cache.add_or_update(CacheEntry("n1", V4, 9))
    assert len(list(cache)) == 3
