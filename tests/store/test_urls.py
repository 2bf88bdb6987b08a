"""Which options a Redis URL may give: those that say how to reach the server. None overrides what vfsd relies on."""

import pytest

from vfsd.errors import UsageError
from vfsd.store.base import StoreOptions
from vfsd.store.url import open_store

PLACES = {
    "redis": "redis://127.0.0.1:1",
    "rediss": "rediss://127.0.0.1:1",
    "unix": "unix:///nowhere",
    "sentinel": "redis+sentinel://127.0.0.1:1/main",
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize(
    "option",
    ["protocol=3", "foo=1", "socket_timeout=9", "retry_on_timeout=1", "decode_responses=1", "%64b=1", "health="],
)
def test_an_option_that_is_not_for_a_url_is_refused_by_name(place: str, option: str) -> None:
    with pytest.raises(UsageError, match=f"unknown option '{option.partition('=')[0]}'"):
        open_store(f"{place}?{option}", StoreOptions())


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_an_option_without_a_value_is_refused_and_not_named(place: str) -> None:
    """It may be the rest of a password."""
    with pytest.raises(UsageError, match="an option without a value") as caught:
        open_store(f"{place}?rest", StoreOptions())
    assert "rest" not in str(caught.value).partition("an option")[2]


def test_tls_options_are_for_tls() -> None:
    with pytest.raises(UsageError, match="unknown option 'ssl_cert_reqs'"):
        open_store(f"{PLACES['redis']}?ssl_cert_reqs=none", StoreOptions())


@pytest.mark.parametrize(
    "url",
    [
        f"{PLACES['redis']}?db=3",
        f"{PLACES['unix']}?db=3&username=agent&password=x",
        f"{PLACES['rediss']}/2?ssl_ca_certs=/a&ssl_ca_path=/b&ssl_cert_reqs=required&ssl_check_hostname=true",
        f"{PLACES['rediss']}?ssl_certfile=/c&ssl_keyfile=/d&ssl_password=x",
        f"{PLACES['sentinel']}/1?sentinel_username=agent&sentinel_password=x",
    ],
)
async def test_what_says_how_to_reach_the_server_is_taken(url: str) -> None:
    store = open_store(url, StoreOptions())
    assert "=x" not in store.label
    await store.aclose()


@pytest.mark.parametrize("url", ["redis://127.0.0.1/abc", "redis://127.0.0.1:6379/1/2", "rediss://127.0.0.1/O"])
def test_a_database_that_is_no_number_is_refused_and_not_taken_for_0(url: str) -> None:
    with pytest.raises(UsageError, match="not understood"):
        open_store(url, StoreOptions())
