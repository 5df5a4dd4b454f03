"""Who sends a request: tokens, certificates, service accounts, impersonation."""

from __future__ import annotations

import asyncio
import json
import ssl
from pathlib import Path
from typing import Any

import pytest

from kemu import errors
from kemu.emulated.gateway.authentication import authenticators, certificates, impersonations, service_accounts
from kemu.emulated.gateway.authentication.authenticators import Authenticator
from kemu.emulated.gateway.authentication.impersonations import Right
from kemu.emulated.objects import identities
from kemu.emulated.objects.identities import User
from kemu.messages.k8s import core_v1_pb2

ALICE = User("alice", ("dev", identities.AUTHENTICATED))
DEFAULT = service_accounts.Account("default", "default", "uid-1")


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


async def test_a_known_token_is_its_user() -> None:
    authenticator = Authenticator({"secret": ALICE})
    assert await authenticator.authenticate(bearer("secret")) == ALICE
    assert await authenticator.authenticate({"authorization": "bearer   secret "}) == ALICE


@pytest.mark.parametrize("token", ["Secret", "secret2", "secre", "a.b.c", "\u00e9"])
async def test_any_other_token_is_refused(token: str) -> None:
    authenticator = Authenticator({"secret": ALICE}, accounts=service_accounts.Tokens())
    with pytest.raises(errors.Unauthorized):
        await authenticator.authenticate(bearer(token))


async def test_whoever_shows_nothing_is_anonymous_or_refused() -> None:
    assert await Authenticator({}).authenticate({}) == identities.ANONYMOUS
    assert await Authenticator({}).authenticate({"authorization": "Basic YTpi"}) == identities.ANONYMOUS
    with pytest.raises(errors.Unauthorized):
        await Authenticator({}, anonymous=False).authenticate({})


async def test_a_token_of_a_service_account_is_good_while_it_lasts_and_its_account_exists() -> None:
    tokens = service_accounts.Tokens()
    now, uid = [1000.0], ["uid-1"]

    async def look(plural: str, namespace: str, name: str) -> core_v1_pb2.ServiceAccount | None:
        if (plural, namespace, name) != ("serviceaccounts", "default", "default"):
            return None
        found = core_v1_pb2.ServiceAccount()
        found.metadata.uid = uid[0]
        return found

    authenticator = Authenticator({}, accounts=tokens, look=look, now_s=lambda: now[0])
    token = tokens.sign(DEFAULT, now_s=1000, seconds=600)
    found = await authenticator.authenticate(bearer(token))
    assert found.name == "system:serviceaccount:default:default"
    assert "system:serviceaccounts:default" in found.groups
    now[0] = 1659.9  # one minute is granted
    assert await authenticator.of_token(token) == found
    now[0] = 1660.0
    assert await authenticator.of_token(token) is None
    now[0], uid[0] = 1000.0, "uid-2"  # deleted, and made again
    assert await authenticator.of_token(token) is None
    uid[0] = "uid-1"
    assert await authenticator.of_token(tokens.sign(DEFAULT, now_s=1000, audiences=["vault"])) is None
    assert await authenticator.of_token(service_accounts.Tokens().sign(DEFAULT, now_s=1000)) is None


async def test_a_token_ends_with_the_object_to_which_it_is_bound() -> None:
    tokens = service_accounts.Tokens()
    objects: dict[tuple[str, str], Any] = {
        ("serviceaccounts", "default"): core_v1_pb2.ServiceAccount(),
        ("pods", "a"): core_v1_pb2.Pod(),
        ("secrets", "s"): core_v1_pb2.Secret(),
    }
    for (plural, _), obj in objects.items():
        obj.metadata.uid = "uid-1" if plural == "serviceaccounts" else f"uid-of-{plural}"

    async def look(plural: str, namespace: str, name: str) -> Any:
        return objects.get((plural, name))

    authenticator = Authenticator({}, accounts=tokens, look=look, now_s=lambda: 1000.0)
    bound = service_accounts.Bound("Pod", "a", "uid-of-pods"), service_accounts.Bound("Node", "n", "uid-of-n")
    token = tokens.sign(DEFAULT, now_s=1000, bound=bound)
    found = await authenticator.identify(token)
    assert (found.user.uid, found.audiences) == ("uid-1", (service_accounts.ISSUER,))
    extra = {key.partition("/")[2]: values for key, values in found.user.extra}
    assert extra.pop("credential-id")[0].startswith("JTI=")
    assert extra == {
        "pod-name": ("a",),
        "pod-uid": ("uid-of-pods",),
        "node-name": ("n",),
        "node-uid": ("uid-of-n",),
    }
    metadata = objects["pods", "a"].metadata
    metadata.deletionTimestamp.seconds = 990
    assert await authenticator.of_token(token) is not None  # it may still end in order
    metadata.deletionTimestamp.seconds = 900
    assert await authenticator.of_token(token) is None
    metadata.ClearField("deletionTimestamp")
    metadata.uid = "another"
    with pytest.raises(errors.Unauthorized, match="does not match service account pod ref claim"):
        await authenticator.identify(token)
    del objects["pods", "a"]
    with pytest.raises(errors.Unauthorized, match="service account token has been invalidated"):
        await authenticator.identify(token)

    legacy = tokens.sign_legacy(DEFAULT, "s")
    with pytest.raises(errors.Unauthorized, match="does not match server's copy"):
        await authenticator.identify(legacy)
    objects["secrets", "s"].data["token"] = legacy.encode()
    assert (await authenticator.identify(legacy)).user == DEFAULT.user._replace(uid="uid-1")


async def test_a_token_is_good_for_its_audiences() -> None:
    tokens = service_accounts.Tokens(issuer="https://a")
    authenticator = Authenticator({}, accounts=tokens, now_s=lambda: 1000.0)
    token = tokens.sign(DEFAULT, now_s=1000, audiences=["a", "b"])
    assert (await authenticator.identify(token, ["b", "c"])).audiences == ("b",)
    # The words of kube-apiserver v1.36.3.
    wanted = '[invalid bearer token, token audiences ["a" "b"] is invalid for the target audiences ["https://a"]]'
    with pytest.raises(errors.Unauthorized) as refused:
        await authenticator.identify(token)
    assert refused.value.message == wanted


def test_others_can_verify_tokens_by_the_published_key() -> None:
    import jwt

    tokens = service_accounts.Tokens()
    token = tokens.sign(DEFAULT, now_s=1000)
    configuration = json.loads(tokens.configuration("https://h"))
    assert configuration["jwks_uri"] == "https://h/openid/v1/jwks"
    keys = jwt.PyJWKSet.from_json(tokens.keys().decode())
    key = keys[jwt.get_unverified_header(token)["kid"]]
    options: Any = {"verify_exp": False}
    claims = jwt.decode(
        token, key, algorithms=configuration["id_token_signing_alg_values_supported"],
        audience=configuration["issuer"], issuer=configuration["issuer"], options=options,
    )  # fmt: skip
    assert claims["sub"] == "system:serviceaccount:default:default"


def test_a_token_whose_algorithm_is_none_is_nobodys() -> None:
    import jwt

    claims = {"iss": service_accounts.ISSUER, "aud": service_accounts.ISSUER, "exp": 9e9, "nbf": 0,
              "kubernetes.io": {"namespace": "a", "serviceaccount": {"name": "b", "uid": "c"}}}  # fmt: skip
    unsigned = jwt.encode(claims, "", algorithm="none")
    assert service_accounts.Tokens().read(unsigned, now_s=1000) is None


async def test_a_certificate_counts_before_a_token() -> None:
    subject = ((("organizationName", "ops"),), (("commonName", "bob"),))
    found = await Authenticator({"secret": ALICE}).authenticate(bearer("wrong"), {"subject": subject})
    assert found == User("bob", ("ops", identities.AUTHENTICATED))


def test_a_certificate_may_tell_the_uid() -> None:
    """``parseUIDFromCert``: one, and not empty."""
    uid = (("1.3.6.1.4.1.57683.2", "u-1"),)
    subject = ((("commonName", "bob"),), uid)
    assert authenticators.of_certificate({"subject": subject}) == User("bob", (identities.AUTHENTICATED,), "u-1")
    for more in (uid, (("1.3.6.1.4.1.57683.2", ""),)):
        with pytest.raises(errors.Unauthorized):
            authenticators.of_certificate({"subject": (*subject, more)})


async def test_what_the_authority_signs_is_accepted_on_both_sides(tmp_path: Path) -> None:
    authority = certificates.Authority.load(certificates.Authority.make().pair)
    shown: list[Any] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        shown.append(writer.get_extra_info("peercert"))
        writer.close()

    server_side = context(ssl.PROTOCOL_TLS_SERVER, tmp_path, "server", authority.server(["127.0.0.1"]), authority)
    server_side.verify_mode = ssl.CERT_OPTIONAL
    client_side = context(ssl.PROTOCOL_TLS_CLIENT, tmp_path, "client", authority.client(ALICE), authority)
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=server_side)
    port = server.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=client_side)
    await reader.read()
    writer.close()
    strangers = context(ssl.PROTOCOL_TLS_CLIENT, tmp_path, "stranger", None, certificates.Authority.make())
    with pytest.raises(ssl.SSLCertVerificationError):
        await asyncio.open_connection("127.0.0.1", port, ssl=strangers)
    server.close()
    assert authenticators.of_certificate(shown[0]) == ALICE


def context(
    protocol: int, folder: Path, name: str, own: certificates.KeyPair | None, authority: certificates.Authority
) -> ssl.SSLContext:
    made = ssl.SSLContext(protocol)
    made.load_verify_locations(cadata=authority.certificate.decode())
    if own is not None:
        file = folder / f"{name}.pem"
        file.write_bytes(own.certificate + own.key)
        made.load_cert_chain(file)
    return made


def test_a_token_file_is_kube_apiservers(tmp_path: Path) -> None:
    file = tmp_path / "tokens.csv"
    file.write_text('t1,admin,1,"system:masters,ops"\n\nt2,carol,2\n')
    found = authenticators.read_token_file(file)
    assert found["t1"] == User("admin", ("system:masters", "ops", identities.AUTHENTICATED), "1")
    assert found["t2"] == User("carol", (identities.AUTHENTICATED,), "2")
    file.write_text("t1,admin,1\nt2\n")
    with pytest.raises(errors.KemuError, match=r"tokens\.csv:2: "):
        authenticators.read_token_file(file)


# Impersonation --------------------------------------------------------------------------------------------------------


LIST = Right("list", "", "pods", "default")
NODE_NAME = "authentication.kubernetes.io/node-name"
AGENT = User("system:serviceaccount:default:agent", ("a",), "", ((NODE_NAME, ("n1",)),))
NODES = ("system:nodes", identities.AUTHENTICATED)


def legacy(*rights: str) -> set[str]:
    return {f"impersonate {right}" for right in rights}


async def impersonate(
    allowed: set[str],
    *headers: tuple[str, str],
    user: User = ALICE,
    asked: Right = LIST,
    last: dict[str, impersonations.Mode] | None = None,
) -> User:
    """``allowed``: verbs and resources with names."""

    async def check(who: User, right: Right) -> errors.Forbidden | None:
        part = f"/{right.subresource}" if right.subresource else ""
        return None if f"{right.verb} {right.resource}{part}/{right.name}" in allowed else right.forbidden(who)

    return await impersonations.impersonated(user, headers, asked, check, {} if last is None else last)


async def test_a_request_without_the_header_is_made_as_its_user() -> None:
    assert await impersonate(set()) == ALICE


async def test_whoever_may_acts_as_another_user() -> None:
    rights = legacy("users/bob", "groups/qa")
    found = await impersonate(rights, ("impersonate-user", "bob"), ("impersonate-group", "qa"))
    assert found == User("bob", ("qa", identities.AUTHENTICATED))
    stated = ("impersonate-user", "bob"), ("impersonate-uid", "7"), ("impersonate-extra-a%2fb", "x")
    found = await impersonate(legacy("users/bob", "uids/7", "userextras/a/b/x"), *stated)
    assert found == User("bob", (identities.AUTHENTICATED,), "7", (("a/b", ("x",)),))
    found = await impersonate(legacy("serviceaccounts/robot"), ("impersonate-user", "system:serviceaccount:ns:robot"))
    assert found.groups == ("system:serviceaccounts", "system:serviceaccounts:ns", identities.AUTHENTICATED)
    # A name that no service account can have is that of any user.
    name = "system:serviceaccount:ns:robot:x"
    assert (await impersonate(legacy(f"users/{name}"), ("impersonate-user", name))).groups == NODES[1:]
    rights, group = (
        legacy("users/bob", "groups/system:unauthenticated"),
        ("impersonate-group", "system:unauthenticated"),
    )
    assert (await impersonate(rights, ("impersonate-user", "bob"), group)).groups == ("system:unauthenticated",)


async def test_a_node_without_its_group_is_no_node_for_who_has_the_verb_impersonate_alone() -> None:
    found = await impersonate(legacy("users/system:node:n1"), ("impersonate-user", "system:node:n1"))
    assert found.node == ""


async def test_whoever_may_not_is_refused_in_the_words_of_the_first_mode() -> None:
    bob, last = ("impersonate-user", "bob"), {}  # type: ignore[var-annotated]
    with pytest.raises(errors.Forbidden) as refused:
        await impersonate(set(), bob)
    assert str(refused.value) == (
        'pods is forbidden: User "alice" cannot impersonate-on:user-info:list resource "pods" in API group "" in the '
        'namespace "default"'
    )
    with pytest.raises(errors.Forbidden) as refused:
        await impersonate({"impersonate-on:user-info:list pods/"}, bob)
    assert str(refused.value) == (
        'users.authentication.k8s.io "bob" is forbidden: User "alice" cannot impersonate:user-info resource "users" in '
        'API group "authentication.k8s.io" at the cluster scope'
    )
    with pytest.raises(errors.Forbidden, match='User "alice" cannot impersonate-on:user-info:get path "/metrics"'):
        await impersonate(set(), bob, asked=Right("get", path="/metrics"))
    # Who has acted by the verb impersonate hears of that.
    await impersonate(legacy("users/bob"), bob, last=last)
    with pytest.raises(errors.Forbidden) as refused:
        await impersonate(set(), bob, last=last)
    assert str(refused.value) == (
        'users "bob" is forbidden: User "alice" cannot impersonate resource "users" in API group "" at the cluster '
        "scope"
    )
    for header, text in (
        (("impersonate-group", "system:masters"), 'resource "groups"'),
        (("impersonate-extra-a%2Fb", "x"), 'resource "userextras/a/b" in API group "authentication.k8s.io"'),
        (("impersonate-uid", "7"), 'resource "uids"'),
    ):
        with pytest.raises(errors.Forbidden, match=text):
            await impersonate(legacy("users/bob"), bob, header, last=last)
    with pytest.raises(errors.BadRequest) as bad:
        await impersonate(set(), ("impersonate-group", "system:masters"))
    assert str(bad.value) == (
        'requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"system:masters"}, '
        "Extra:map[string][]string(nil)} without impersonating a user name"
    )


@pytest.mark.parametrize(
    ("user", "name", "mode", "right", "groups"),
    [
        (ALICE, "bob", "user-info", "users/bob", (identities.AUTHENTICATED,)),
        (ALICE, "system:serviceaccount:ns:robot", "serviceaccount", "serviceaccounts/robot",
         ("system:serviceaccounts", "system:serviceaccounts:ns", identities.AUTHENTICATED)),
        (ALICE, "system:node:n1", "arbitrary-node", "nodes/n1", NODES),
        (AGENT, "system:node:n1", "associated-node", "nodes/*", NODES),
        (AGENT, "system:node:n2", "arbitrary-node", "nodes/n2", NODES),
    ],
)  # fmt: skip
async def test_each_mode_takes_the_right_to_be_that_user_and_to_do_what_is_asked(
    user: User, name: str, mode: str, right: str, groups: tuple[str, ...]
) -> None:
    rights = {f"impersonate:{mode} {right}", f"impersonate-on:{mode}:list pods/"}
    header = "impersonate-user", name
    assert await impersonate(rights, header, user=user) == User(name, groups)
    for one in rights:
        with pytest.raises(errors.Forbidden):
            await impersonate(rights - {one}, header, user=user)
    with pytest.raises(errors.Forbidden, match=f"impersonate-on:{mode}:delete"):
        await impersonate(rights, header, user=user, asked=LIST._replace(verb="delete"))
    if mode != "user-info":
        with pytest.raises(errors.Forbidden):  # all but the name is the API server's word
            await impersonate(
                rights | {f"impersonate:{mode} groups/qa"}, header, ("impersonate-group", "qa"), user=user
            )


async def test_an_agent_is_no_other_node_by_the_right_to_its_own() -> None:
    rights = {"impersonate:associated-node nodes/*", "impersonate-on:associated-node:list pods/"}
    with pytest.raises(errors.Forbidden, match="impersonate-on:arbitrary-node:list"):
        await impersonate(rights, ("impersonate-user", "system:node:n2"), user=AGENT)


@pytest.mark.parametrize(
    ("rights", "headers", "problem"),
    [
        (
            ["groups/system:masters"],
            [("impersonate-group", "system:masters")],
            "the system:masters group is not allowed",
        ),
        (["groups/"], [("impersonate-group", "")], "impersonating the empty string group is not allowed"),
        (["userextras/a/x"], [("impersonate-extra-a", "x")], "must be a domain-prefixed path"),
        (
            ["userextras/a/B/x"],
            [("impersonate-extra-a%2f%42", "x")],
            'a non-lowercase key in extra is not allowed: "a/B"',
        ),
        (["groups/*"], [("impersonate-group", one) for one in "abcd"], ""),
        (["groups/*"], [("impersonate-group", one) for one in "abc"], 'cannot impersonate:user-info resource "groups"'),
        (["userextras/*/*"], [("impersonate-extra-a%2fb", one) for one in "abcd"], ""),
        (["userextras/a/b/c"], [("impersonate-extra-a%2fb", "c")], ""),
    ],
)
async def test_some_groups_and_keys_are_nobodys_to_have(
    rights: list[str], headers: list[tuple[str, str]], problem: str
) -> None:
    may = {"impersonate-on:user-info:list pods/", "impersonate:user-info users/bob"}
    may |= {f"impersonate:user-info {one}" for one in rights}
    request = impersonate(may, ("impersonate-user", "bob"), *headers)
    if problem:
        with pytest.raises(errors.Forbidden, match=problem):
            await request
    else:
        assert (await request).name == "bob"
