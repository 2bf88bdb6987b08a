"""A Redis URL may set the options that say how to reach the server, and none that vfsd relies on."""

import re

import pytest

from vfsd.errors import UsageError
from vfsd.store.base import StoreOptions
from vfsd.store.url import can_wait_for_replicas, local_path, open_store, with_absolute_path

BASE_URLS = {
    "redis": "redis://127.0.0.1:1",
    "rediss": "rediss://127.0.0.1:1",
    "unix": "unix:///nowhere",
    "sentinel": "redis+sentinel://127.0.0.1:1/main",
}


@pytest.mark.parametrize("base_url", BASE_URLS.values(), ids=BASE_URLS)
@pytest.mark.parametrize(
    "option",
    ["protocol=3", "foo=1", "socket_timeout=9", "retry_on_timeout=1", "decode_responses=1", "%64b=1", "health="],
)
def test_an_option_that_a_url_may_not_set_is_refused_with_its_name(base_url: str, option: str) -> None:
    with pytest.raises(UsageError, match=f"unknown option '{option.partition('=')[0]}'"):
        open_store(f"{base_url}?{option}", StoreOptions())


@pytest.mark.parametrize("base_url", BASE_URLS.values(), ids=BASE_URLS)
def test_an_option_without_a_value_is_refused_and_not_shown(base_url: str) -> None:
    """The text may be the end of a password."""
    with pytest.raises(UsageError, match="an option without a value") as caught:
        open_store(f"{base_url}?rest", StoreOptions())
    assert "rest" not in str(caught.value).partition("an option")[2]


def test_tls_options_need_a_tls_scheme() -> None:
    with pytest.raises(UsageError, match="unknown option 'ssl_cert_reqs'"):
        open_store(f"{BASE_URLS['redis']}?ssl_cert_reqs=none", StoreOptions())


@pytest.mark.parametrize(
    "url",
    [
        f"{BASE_URLS['redis']}?db=3",
        f"{BASE_URLS['unix']}?db=3&username=agent&password=x",
        f"{BASE_URLS['rediss']}/2?ssl_ca_certs=/a&ssl_ca_path=/b&ssl_cert_reqs=required&ssl_check_hostname=true",
        f"{BASE_URLS['rediss']}?ssl_certfile=/c&ssl_keyfile=/d&ssl_password=x",
        f"{BASE_URLS['sentinel']}/1?sentinel_username=agent&sentinel_password=x",
    ],
)
async def test_options_that_say_how_to_reach_the_server_are_accepted(url: str) -> None:
    store = open_store(url, StoreOptions())
    assert "=x" not in store.label
    await store.aclose()


@pytest.mark.parametrize("url", ["redis://127.0.0.1/abc", "redis://127.0.0.1:6379/1/2", "rediss://127.0.0.1/O"])
def test_a_database_that_is_not_a_number_is_refused_and_not_read_as_0(url: str) -> None:
    with pytest.raises(UsageError, match=r"the database '[abcO12/]+' is no number"):
        open_store(url, StoreOptions())


@pytest.mark.parametrize("port", ["0", "x", "65536"])
def test_a_port_that_there_cannot_be_is_refused(port: str) -> None:
    with pytest.raises(UsageError, match="its port is no number from 1 to 65535"):
        open_store(f"redis://127.0.0.1:{port}/0", StoreOptions())


def test_a_scheme_may_be_written_in_capitals() -> None:
    assert with_absolute_path("SQLite:rel.db", lambda path: f"/here/{path}") == "SQLite:/here/rel.db"
    assert local_path("UNIX:///run/redis.sock") == "/run/redis.sock"
    assert not can_wait_for_replicas("Memory:")


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("localhost:6379", "did you mean redis://localhost:6379/0?"),
        ("redis.internal", "did you mean redis://redis.internal/0?"),
        ("/var/lib/vfsd.db", "did you mean sqlite:/var/lib/vfsd.db, or unix:///var/lib/vfsd.db"),
        ("./vfsd.db", "did you mean sqlite:./vfsd.db?"),
        ("mysql://host/1", "unknown scheme 'mysql'; this vfsd knows memory, redis"),
    ],
)
def test_a_store_without_a_known_scheme_gets_a_suggestion(url: str, meant: str) -> None:
    with pytest.raises(UsageError, match=re.escape(meant)):
        open_store(url, StoreOptions())
